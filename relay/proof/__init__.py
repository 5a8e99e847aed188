"""What the evidence of a reply is worth: Relay looks at the places it names, and runs the commands it brings."""
