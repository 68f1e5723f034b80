"""What a run leaves on the disk: checksummed files, their versions, and the manifest that lists them.

This library reads and writes files only; it knows nothing of Kedro, so an audit needs no session.
"""
