"""Where reports come from and objects go."""
