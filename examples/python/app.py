"""A small service that asks Headgate about every request: `python3 app.py 3000 http://127.0.0.1:8082`."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headgate import Headgate


def make_handler(limits: Headgate):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            decision = limits.check(f"ip:{self.client_address[0]}", method=self.command, path=self.path)
            body = b"hello\n" if decision.allowed else b"too many requests\n"
            self.send_response(decision.status)
            for name, value in decision.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    return Handler


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), make_handler(Headgate(sys.argv[2])))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
