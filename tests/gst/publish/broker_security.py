#!/usr/bin/env python3
"""clpublish and brokers that want TLS, certificates and passwords: right ones work, wrong ones are one warning that says what is wrong.

    broker_security.py [--kafka-cluster PROGRAM]      gst-launch-1.0 and GST_PLUGIN_PATH as in the environment

Servers: mosquitto, redis-server, and librdkafka's cluster in memory, which knows no security: a proxy in here has its certificate and asks
for the password (SASL PLAIN). One that is not there is skipped, and said. Exit status 77 where no server is there at all.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

import brokers

USER, PASSWORD, FRAMES = "cam", "s3cret=word", 5


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Files:
    """Certificates of an authority, a server at 127.0.0.1, a client, another authority; credentials."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name in ("ca", "other"):
            run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self[f"{name}.key"], "-out", self[f"{name}.pem"],
                "-subj", f"/CN={name}", "-days", "2")
        for name, issuer, address in (("server", "ca", "IP:127.0.0.1"), ("elsewhere", "ca", "DNS:elsewhere.example"),
                                      ("client", "ca", "DNS:client"), ("stranger", "other", "DNS:client")):
            pathlib.Path(self["ext"]).write_text(f"subjectAltName={address}")
            run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", self[f"{name}.key"], "-out", self["csr"], "-subj", f"/CN={name}")
            run("openssl", "x509", "-req", "-in", self["csr"], "-CA", self[f"{issuer}.pem"], "-CAkey", self[f"{issuer}.key"],
                "-CAcreateserial", "-out", self[f"{name}.pem"], "-days", "2", "-extfile", self["ext"])
        for name, password in (("right", PASSWORD), ("wrong", "guess")):
            path = pathlib.Path(self[name])
            path.write_text(f"# of the tests\nusername={USER}\npassword={password}\n")
            path.chmod(0o600)
        pathlib.Path(self["text"]).write_text("not a certificate\n")
        self.folder.chmod(0o755)

    def __getitem__(self, name):
        return str(self.folder / name)


class Mosquitto:
    """Two listeners: `port` asks for the password, `strict` for a client's certificate besides."""

    def __init__(self, files):
        self.port, self.strict = brokers.free_port(), brokers.free_port()
        run("mosquitto_passwd", "-c", "-b", files["passwords"], USER, PASSWORD)
        tls = f"cafile {files['ca.pem']}\ncertfile {files['server.pem']}\nkeyfile {files['server.key']}\n"
        pathlib.Path(files["mosquitto.conf"]).write_text(
            f"user {os.environ.get('USER', 'root')}\nallow_anonymous false\npassword_file {files['passwords']}\n"
            f"listener {self.port} 127.0.0.1\n{tls}listener {self.strict} 127.0.0.1\n{tls}require_certificate true\n")
        self.server = subprocess.Popen(["mosquitto", "-c", files["mosquitto.conf"]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        brokers.wait_for(self.port)

    def end(self):
        self.server.kill()
        self.server.wait()


class Redis:
    """`port` is plain, `strict` has TLS; both ask for the password."""

    def __init__(self, files):
        self.port, self.strict = brokers.free_port(), brokers.free_port()
        self.server = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", files.folder,
                                        "--tls-port", str(self.strict), "--tls-ca-cert-file", files["ca.pem"],
                                        "--tls-cert-file", files["server.pem"], "--tls-key-file", files["server.key"],
                                        "--requirepass", "unused", "--user", USER, "on", f">{PASSWORD}", "~*", "+@all"],
                                       stdout=subprocess.DEVNULL)
        brokers.wait_for(self.port)

    def end(self):
        self.server.kill()
        self.server.wait()


class Kafka:
    """The cluster in memory with a proxy before each broker: `strict` asks for a client's certificate, `port` for the password."""

    def __init__(self, files, program):
        self.cluster = subprocess.Popen([program, "cameras"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        inner = [int(address.rsplit(":", 1)[1]) for address in self.cluster.stdout.readline().strip().split(",")]
        self.servers = []
        self.port = self.begin(files, inner, password=True)
        self.strict = self.begin(files, inner, password=False)

    def begin(self, files, inner, password):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files["server.pem"], files["server.key"])
        if not password:
            context.load_verify_locations(files["ca.pem"])
            context.verify_mode = ssl.CERT_REQUIRED
        ports = {port: brokers.free_port() for port in inner}
        for port, outer in ports.items():
            server = socketserver.ThreadingTCPServer(("127.0.0.1", outer), lambda *a, port=port: Proxy(context, ports, port, password, *a))
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.servers.append(server)
        return next(iter(ports.values()))

    def end(self):
        for server in self.servers:
            server.shutdown()
        self.cluster.kill()
        self.cluster.wait()


class Proxy(socketserver.BaseRequestHandler):
    def __init__(self, context, ports, port, password, *more):
        self.context, self.ports, self.port, self.password = context, ports, port, password
        super().__init__(*more)

    def handle(self):
        self.versions = set()  # numbers of requests for the broker's versions, to whose answers SASL is added
        try:
            with self.context.wrap_socket(self.request, server_side=True) as client, socket.create_connection(("127.0.0.1", self.port)) as broker:
                threading.Thread(target=self.answer, args=(broker, client), daemon=True).start()
                unknown = self.password
                while frame := read_frame(client):
                    kind, version, number = struct.unpack(">hhi", frame[4:12])
                    if kind == API_VERSIONS:
                        self.versions.add((number, version >= 3))
                    if kind == SASL_HANDSHAKE:
                        client.sendall(with_length(frame[8:12] + bytes(2) + struct.pack(">ih", 1, 5) + b"PLAIN"))
                    elif kind == SASL_AUTHENTICATE:
                        unknown = not frame.endswith(f"\0{USER}\0{PASSWORD}".encode())
                        why = b"\xff\xff" if not unknown else struct.pack(">h", 14) + b"wrong password"
                        client.sendall(with_length(frame[8:12] + struct.pack(">h", 58 if unknown else 0) + why + bytes(4) + bytes(8 * (version > 0))))
                    elif unknown and kind != API_VERSIONS:
                        return
                    else:
                        broker.sendall(frame)
        except OSError:
            pass

    def answer(self, broker, client):
        """Metadata name the brokers' addresses, which are the proxies'."""
        try:
            while frame := read_frame(broker):
                for number, flexible in self.versions:
                    if self.password and frame[4:10] == struct.pack(">ih", number, 0):
                        frame = with_sasl(frame, flexible)
                for inner, outer in self.ports.items():
                    frame = frame.replace(b"127.0.0.1" + struct.pack(">i", inner), b"127.0.0.1" + struct.pack(">i", outer))
                client.sendall(frame)
        except OSError:
            pass


API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36


def with_length(message):
    return struct.pack(">i", len(message)) + message


def with_sasl(frame, flexible):
    """The versions that a broker tells, with those of SASL before them."""
    more = b"".join(struct.pack(">hhh", key, 0, 1) + b"\0" * flexible for key in (SASL_HANDSHAKE, SASL_AUTHENTICATE))
    if flexible:  # a count of one byte, one more than it is
        return with_length(frame[4:10] + bytes([frame[10] + 2]) + more + frame[11:])
    return with_length(frame[4:10] + struct.pack(">i", struct.unpack(">i", frame[10:14])[0] + 2) + more + frame[14:])


def read_frame(connection):
    """A message with its length before it; empty at the end."""
    data = b""
    size = 4
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return b""
        data += part
        if len(data) == 4:
            size = 4 + struct.unpack(">i", data)[0]
    return data


failures, pending = [], []


def expect(*what):
    """Is done by finish(), several at a time, since a refused sender waits at the end for what it may still get rid of."""
    pending.append(what)


def finish():
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda what: check(*what), pending))
    pending.clear()


def check(name, method, address, properties, wanted):
    """wanted: "" where everything arrives without a warning, else an expression that the only warning or error before the end matches."""
    for last in (False, False, True):  # on a loaded machine a right connection may take longer than its 3 s
        problem, said = try_once(method, address, properties, wanted)
        if problem is None or last:
            break
    if problem is not None:
        failures.append(f"{method}, {name}: {problem}")
    print(f"{method}, {name}: {said[0] if said else 'delivered'}", flush=True)


def try_once(method, address, properties, wanted):
    """What is wrong (None: nothing), and what clpublish said."""
    launch = ["gst-launch-1.0", "videotestsrc", f"num-buffers={FRAMES}", "!", "video/x-raw,format=GRAY8,width=16,height=16", "!", "clpublish",
              f"method={method}", f"address={address}", "topic=cameras", *properties, "!", "fakesink"]
    output = subprocess.run(launch, capture_output=True, text=True, timeout=300)
    text = output.stdout + output.stderr
    said = [line for line in re.findall(r"^(?:WARNING|ERROR): from element \S+: (.*)$", text, re.M) if "at the end of the stream" not in line]
    undelivered = "not with the broker at the end of the stream" in text or output.returncode != 0
    if PASSWORD in text:
        return f"the password is in the output\n{text}", said
    if (not wanted and (said or undelivered)) or (wanted and (len(said) != 1 or not re.search(wanted, said[0]) or not undelivered)):
        return f"{said or 'nothing'} was said, {wanted or 'nothing'} is right\n{text}", said
    return None, said


def common(method, files, address):
    """Refused before anything is sent."""
    ca = f"ca-file={files['ca.pem']}"
    expect("a CA file that is not there", method, address, [f"ca-file={files['none']}"], "ca-file .*none: .*No such file")
    expect("a CA file that is none", method, address, [f"ca-file={files['text']}"], "ca-file .*text: is no PEM file")
    expect("a certificate without its key", method, address, [ca, f"cert-file={files['client.pem']}"], "key-file is not")
    expect("a key without its certificate", method, address, [ca, f"key-file={files['client.key']}"], "cert-file is not")
    expect("credentials that are not there", method, address, [f"credentials-file={files['none']}"], "credentials-file .*none: .*No such file")
    expect("credentials that are none", method, address, [f"credentials-file={files['text']}"], "takes lines of username=")
    expect("a password in the address", method, f"{USER}:{PASSWORD}@127.0.0.1", [], "credentials-file")
    plain = {"mqtt": "mqtt", "redis": "redis", "kafka": "kafka"}[method]
    expect("a plain scheme and a CA file", method, f"{plain}://{address}", [ca], "is not encrypted, but ca-file")


def passwords(method, address, ca, files, refused):
    right, wrong = (f"credentials-file={files[name]}" for name in ("right", "wrong"))
    expect("the right password", method, address, [*ca, right], "")
    expect("a wrong password", method, address, [*ca, wrong], refused)


def certificates(method, port, more, files, refused="certificate verify failed"):
    ca, other = f"ca-file={files['ca.pem']}", f"ca-file={files['other.pem']}"
    expect("another authority", method, f"127.0.0.1:{port}", [other, *more], refused)
    expect("a name that the certificate does not have", method, f"localhost:{port}", [ca, *more], refused + "|[Hh]ost ?name|does not name this host")


def client(name):
    return lambda files: [f"cert-file={files[name + '.pem']}", f"key-file={files[name + '.key']}"]


def mqtt(files):
    server = Mosquitto(files)
    try:
        ca, right = f"ca-file={files['ca.pem']}", f"credentials-file={files['right']}"
        common("mqtt", files, f"127.0.0.1:{server.port}")
        passwords("mqtt", f"127.0.0.1:{server.port}", [ca], files, "refuses the user or password|refuses the user name or password")
        expect("no password", "mqtt", f"mqtts://127.0.0.1:{server.port}", [ca], "refuses the user")
        certificates("mqtt", server.port, [right], files)
        expect("plain to a port with TLS", "mqtt", f"127.0.0.1:{server.port}", [right], "no answer in MQTT")
        strict = f"127.0.0.1:{server.strict}"
        expect("the client's certificate", "mqtt", strict, [ca, right, *client("client")(files)], "")
        expect("no certificate of the client", "mqtt", strict, [ca, right], "TLS: |no TLS connection")
        expect("a certificate of another authority", "mqtt", strict, [ca, right, *client("stranger")(files)], "TLS: |no TLS connection")
        expect("a key of another certificate", "mqtt", strict, [ca, right, f"cert-file={files['client.pem']}", f"key-file={files['server.key']}"],
               "no TLS connection|key values mismatch")
        finish()
    finally:
        server.end()


def redis(files):
    server = Redis(files)
    try:
        common("redis", files, f"127.0.0.1:{server.port}")
        plain = f"127.0.0.1:{server.port}"
        passwords("redis", plain, [], files, "WRONGPASS")
        expect("no password", "redis", plain, [], "NOAUTH")
        ca, right = f"ca-file={files['ca.pem']}", f"credentials-file={files['right']}"
        strict = f"127.0.0.1:{server.strict}"
        if "redis-tls" not in built_in():
            expect("TLS that is not built in", "redis", strict, [ca, right], "built without TLS")
            finish()
            return
        certificates("redis", server.strict, [right, *client("client")(files)], files)
        expect("the client's certificate", "redis", strict, [ca, right, *client("client")(files)], "")
        expect("a wrong password over TLS", "redis", strict, [ca, f"credentials-file={files['wrong']}", *client("client")(files)], "WRONGPASS")
        expect("no certificate of the client", "redis", strict, [ca, right], "TLS: |closed|reset")
        finish()
    finally:
        server.end()


def kafka(files, program):
    server = Kafka(files, program)
    try:
        common("kafka", files, f"127.0.0.1:{server.port}")
        ca, right = f"ca-file={files['ca.pem']}", f"credentials-file={files['right']}"
        passwords("kafka", f"127.0.0.1:{server.port}", [ca], files, "wrong password")
        certificates("kafka", server.port, [right], files)
        strict = f"127.0.0.1:{server.strict}"
        expect("the client's certificate", "kafka", strict, [ca, *client("client")(files)], "")
        expect("no certificate of the client", "kafka", strict, [ca], "SSL|certificate")
        finish()
    finally:
        server.end()


def built_in():
    """Names of the methods that clpublish has, and redis-tls."""
    text = subprocess.run(["gst-inspect-1.0", "clpublish"], capture_output=True, text=True).stdout
    names = {name for name in ("mqtt", "redis", "kafka") if not re.search(rf"\): {name} .*not built in", text)}
    return names | ({"redis-tls"} if re.search(r"\): redis .*also with TLS", text) else set())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka-cluster", default="")
    parser.add_argument("--only", default="mqtt,redis,kafka")
    options = parser.parse_args()
    needs = {"mqtt": ["mosquitto", "mosquitto_passwd"], "redis": ["redis-server"], "kafka": []}
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        files = None
        for method in options.only.split(","):
            missing = [program for program in ["openssl", *needs[method]] if shutil.which(program) is None]
            if missing:
                print(f"{method}: SKIPPED, there is no {missing[0]} (pipelines/install brokers)")
            elif method not in built_in() or (method == "kafka" and not options.kafka_cluster):
                print(f"{method}: SKIPPED, not built in")
            else:
                ran += 1
                files = files or Files(folder)
                {"mqtt": mqtt, "redis": redis, "kafka": lambda f: kafka(f, options.kafka_cluster)}[method](files)
    if failures:
        sys.exit("\n".join(f"FAIL {f}" for f in failures))
    sys.exit(0 if ran else 77)


if __name__ == "__main__":
    main()
