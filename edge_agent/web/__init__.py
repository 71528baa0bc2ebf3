"""Web: the page on the machine and the HTTP door behind it, served by the agent itself (extra `web`).

site (what the door sees of the agent: a Protocol) <- web_site.py, the agent's side; server (its own thread and event
loop) -> app (routes, headers) -> locks (who may) -> one file a noun, each with the rows of its ENDPOINTS.
Nothing here touches engines: what needs one is handed to the main loop and waited for.
"""
