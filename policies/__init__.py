"""The policy pack: rules that a preview or an update breaks on, one module a topic. They know Pulumi's types and nothing of ours."""
