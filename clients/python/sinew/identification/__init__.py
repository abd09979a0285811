"""The command ``sinew identify``: a file says what is sought in which recordings; a folder takes what was found."""
