"""Cameras: where frames come from. A new kind is a file here and a row in CAMERAS."""

CAMERAS = {
    "csi": "edge_agent.cameras.csi:CsiCamera",
    "folder": "edge_agent.cameras.folder:FolderCamera",
    "rtsp": "edge_agent.cameras.rtsp:RtspCamera",
    "v4l2": "edge_agent.cameras.v4l2:V4l2Camera",
    "video": "edge_agent.cameras.video:video_camera",
}
