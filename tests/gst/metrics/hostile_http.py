"""What other users of the machine and other sites' pages may send to the servers of clmetrics and clwatch."""
import http.client
import os
import resource
import socket
import time

MEBIBYTE = 1 << 20


def check(what, true):
    if not true:
        raise SystemExit(f"failed: {what}")


def status(port, path, host="localhost"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def send(port, head, part, size):
    """Sends `part` again and again, up to `size` bytes or until the server closes. Returns the bytes sent."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        try:
            client.sendall(head)
            while sent < size:
                client.sendall(part)
                sent += len(part)
        except ConnectionError:
            pass
    return sent


def opened(port, count):
    """Connections that send nothing; the server may end some."""
    clients = []
    for _ in range(count):
        client = socket.socket()
        client.settimeout(10)
        try:
            client.connect(("127.0.0.1", port))
        except OSError:
            client.close()
            continue
        clients.append(client)
    return clients


def answers(port, path, patience=60):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            return status(port, path) == 200
        except OSError:
            time.sleep(0.1)
    return False


def check_streams(port, path, pid):
    """Streams without a next part, of clients that stay and leave."""
    before = descriptors(pid)
    clients = opened(port, 300)
    for client in clients:
        try:
            client.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
        except OSError:
            pass
    check("others are answered beside streams", answers(port, "/"))
    for client in clients:
        client.close()
    end = time.monotonic() + 60
    while descriptors(pid) > before + 4:
        check(f"{descriptors(pid) - before} descriptors of clients that have left", time.monotonic() < end)
        time.sleep(0.1)


def check_server(port, path, pid):
    """Attacks the server of process `pid`, which answers to `path`."""
    # A page of another site whose name leads here.
    for host in ("other.example", f"other.example:{port}", "localhost.other.example", "127.0.0.1.other.example"):
        check(f"{host} is refused", status(port, path, host) == 403)
    for host in ("LOCALHOST", f"localhost:{port}", f"127.0.0.1:{port}", "[::1]", f"[::1]:{port}", "10.1.2.3"):
        check(f"{host} is not refused", status(port, path, host) == 200)

    # Bodies and headers without end.
    before = resident(pid)
    for head, part in ((b"GET %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n", bytes(65536)),
                       (b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + bytes(65536) + b"\r\n"),
                       (b"GET %s HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"a" * 65536)):
        sent = send(port, head % path.encode(), part, 128 * MEBIBYTE)
        grown = resident(pid) - before
        check(f"{sent >> 20} MiB of a request took {grown >> 20} MiB", grown < 64 * MEBIBYTE)

    # Requests that never end, one byte at a time, more than are kept.
    fds = descriptors(pid)
    clients = opened(port, 1000)
    for client in clients:
        try:
            client.sendall(b"G")
        except OSError:
            pass
    check(f"{descriptors(pid) - fds} descriptors for connections", descriptors(pid) - fds <= 140)
    check("others are answered beside them", answers(port, path))
    for client in clients:
        client.close()

    # An application that has no descriptor left, for a while.
    old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 4, old[1]))
    clients = opened(port, 20)
    time.sleep(0.5)
    for client in clients:
        client.close()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
    check("it is answered afterwards", answers(port, path))
