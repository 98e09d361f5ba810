#!/usr/bin/env python3
"""A proxy that stands for a slow network, where the kernel has no delays of its own: `tc netem` needs a module.

usage: delay.py PORT SERVER_PORT MILLISECONDS [WINDOW_MIB]

A connection costs a round trip, and so does each request. What comes back is sent as TCP does it: 14,600 bytes in the first round trip, twice
as many in each further one, and at most WINDOW_MIB (4) in any.

    delay.py 8020 8000 20 &
    curl -so /dev/shm/c http://127.0.0.1:8020/m.bin
    zt fetch http://127.0.0.1:8020/m.bin /dev/shm/z --allow-http --force
"""
import socket
import sys
import threading
import time

port, server, millis = (int(it) for it in sys.argv[1:4])
most = int(float(sys.argv[4]) * (1 << 20)) if len(sys.argv) > 4 else 4 << 20
trip = millis / 1000


def requests(client, upstream):
    while data := client.recv(1 << 16):
        time.sleep(trip)
        upstream.sendall(data)
    upstream.shutdown(socket.SHUT_WR)


def answers(upstream, client):
    window, due, begun = 14_600, 14_600, time.monotonic()
    while data := upstream.recv(min(due, 1 << 18)):
        client.sendall(data)
        due -= len(data)
        if due == 0:
            time.sleep(max(0, begun + trip - time.monotonic()))
            window, begun = min(2 * window, most), time.monotonic()
            due = window
    client.shutdown(socket.SHUT_WR)


def serve(client):
    time.sleep(trip)
    upstream = socket.create_connection(("127.0.0.1", server))
    for end in (client, upstream):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def quiet(pump, *ends):
        try:
            pump(*ends)
        except OSError:
            pass

    both = [(requests, client, upstream), (answers, upstream, client)]
    threads = [threading.Thread(target=quiet, args=args, daemon=True) for args in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    upstream.close()


with socket.create_server(("127.0.0.1", port), backlog=256) as listener:
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
