"""Options that several commands share, without what is done with their values.

- source, kube, store, client, placement, serve, silence, synthetic_fabric: options of one subject
- output_format: the option `--output`
- value_types, values: types of values, and parsers of values with a form of their own
- decorators: several options at once, and `--watch`

Every `--help` loads these modules. May import `generator.cli.output`, and modules with closed sets
of names that load nothing else. `*_values` beside this package build settings from the values.
"""
