//! Exports over TLS: which client sees what, and streams that are damaged or cut short.

use crate::block_world::BLOCK;
use crate::guests::{BLOCKS, Guest, PATIENCE_NS, STALL_NS, Served, export, node_for};
use cachewright_live::exports::{TlsConfig, TlsConfigError};
use cachewright_live::io::Io;
use cachewright_nbd::{NbdCommand, NbdRequest, Range};
use cachewright_types::TenantId;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::sync::Arc;

/// An authority, and a server that it signed.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
struct Identity {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Authority { issuer }
    }

    /// A certificate with these DNS names and this common name.
    fn signs(&self, dns: &[&str], common: &str) -> Identity {
        let dns: Vec<String> = dns.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(dns).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate, key }
    }

    /// How a server of this authority does TLS; `clients` signs those that it lets in.
    fn config(&self, clients: Option<&Authority>) -> TlsConfig {
        let server = self.signs(&["server"], "server");
        let authorities = clients.map(|clients| clients.issuer.pem());
        TlsConfig::new(
            server.certificate.pem().as_bytes(),
            server.key.serialize_pem().as_bytes(),
            authorities.as_deref().map(str::as_bytes),
        )
        .unwrap()
    }

    /// A client that trusts this authority, with its own certificate if it has one.
    fn client(&self, identity: Option<&Identity>) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = vec![CertificateDer::from(identity.certificate.der().to_vec())];
                let key = PrivateKeyDer::try_from(identity.key.serialize_der()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        ClientConnection::new(Arc::new(config), "server".try_into().unwrap()).unwrap()
    }
}

fn write(cookie: u64, blocks: u64) -> NbdRequest {
    let command = NbdCommand::Write(Range { offset: 0, length: blocks * BLOCK });
    NbdRequest { cookie, offset: 0, command, fua: false }
}

/// The bytes of a write of so many blocks, as a client says them in the clear.
fn write_bytes(guest: &mut Guest, cookie: u64, blocks: u64, byte: u8) -> Vec<u8> {
    let mut plain = Vec::new();
    guest.client.send(&write(cookie, blocks), &mut plain);
    plain.resize(plain.len() + (blocks * BLOCK) as usize, byte);
    plain
}

fn read_all(served: &mut Served, guest: &mut Guest, cookie: u64) -> Vec<u8> {
    let range = Range { offset: 0, length: BLOCKS * BLOCK };
    served.request(guest, cookie, NbdCommand::Read { range, whole: true }, &[]);
    assert_eq!(guest.done[&cookie], Ok(()));
    guest.data[&cookie].clone()
}

#[test]
fn what_is_written_over_tls_is_read_over_tls_and_in_the_clear() {
    let authority = Authority::new();
    let mut served = node_for(&[&[], &[]]);
    served.nbd.offer_tls(authority.config(None), false);
    let mut secure = served.guest("volume-0", Some(authority.client(None)));
    assert!(secure.opened, "{:?}", secure.fault);
    let data: Vec<u8> = (0..BLOCKS * BLOCK).map(|byte| (byte % 251) as u8).collect();
    let range = Range { offset: 0, length: BLOCKS * BLOCK };
    served.request(&mut secure, 1, NbdCommand::Write(range), &data);
    served.request(&mut secure, 2, NbdCommand::Flush, &[]);
    assert_eq!((secure.done[&1], secure.done[&2]), (Ok(()), Ok(())));
    assert_eq!(read_all(&mut served, &mut secure, 3), data);
    let mut clear = served.connect("volume-0");
    assert_eq!(read_all(&mut served, &mut clear, 4), data);
}

#[test]
fn a_node_that_needs_tls_opens_nothing_in_the_clear() {
    let authority = Authority::new();
    let mut served = node_for(&[&[], &[]]);
    served.nbd.offer_tls(authority.config(None), true);
    let clear = served.guest("volume-0", None);
    assert!(!clear.opened && clear.fault.unwrap().contains("needs TLS"));
    assert!(served.guest("volume-0", Some(authority.client(None))).opened);
}

#[test]
fn an_export_is_there_only_for_clients_whose_certificates_name_them() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mut served = node_for(&[&["alice", "carol"], &["bob.example"]]);
    served.nbd.offer_tls(authority.config(Some(&authority)), true);
    let alice = authority.signs(&[], "alice");
    let bob = authority.signs(&["x.example", "bob.example"], "some name");
    let mut open = |identity: Option<&Identity>, export: &str| {
        let guest = served.guest(export, Some(authority.client(identity)));
        served.sim.sockets().client_closes(guest.socket);
        served.settle();
        (guest.opened, guest.fault)
    };
    assert!(open(Some(&alice), "volume-0").0);
    assert!(open(Some(&bob), "volume-1").0);
    assert!(open(Some(&bob), "").0, "the default is the first that it sees");
    for (identity, export) in [(&alice, "volume-1"), (&bob, "volume-0")] {
        let (opened, fault) = open(Some(identity), export);
        assert!(!opened && fault.unwrap().contains("no such export"));
    }
    let (opened, fault) = open(None, "volume-0");
    assert!(!opened && fault.unwrap().contains("CertificateRequired"));
    let stranger = other.signs(&[], "alice");
    let (opened, fault) = open(Some(&stranger), "volume-0");
    assert!(!opened && fault.unwrap().contains("fatal alert"));
    assert_eq!(served.connections(), 0);
}

#[test]
fn in_the_clear_only_exports_for_all_are_there() {
    let authority = Authority::new();
    let mut served = node_for(&[&["alice"], &[]]);
    served.nbd.offer_tls(authority.config(Some(&authority)), false);
    assert!(served.guest("volume-0", None).fault.unwrap().contains("no such export"));
    assert!(served.guest("volume-1", None).opened);
    let alice = authority.signs(&[], "alice");
    assert!(served.guest("volume-0", Some(authority.client(Some(&alice)))).opened);
}

/// A reload takes a client off an export: what it has open ends, and others stay.
#[test]
fn clients_that_may_not_see_an_export_any_more_lose_their_connections() {
    let authority = Authority::new();
    let mut served = node_for(&[&["alice", "bob"], &[]]);
    served.nbd.offer_tls(authority.config(Some(&authority)), true);
    let [alice, bob] = ["alice", "bob"].map(|name| authority.signs(&[], name));
    let mut open = |identity: &Identity, export: &str| {
        let guest = served.guest(export, Some(authority.client(Some(identity))));
        assert!(guest.opened, "{:?}", guest.fault);
        guest
    };
    let (mut barred, mut allowed, mut other) =
        (open(&alice, "volume-0"), open(&bob, "volume-0"), open(&alice, "volume-1"));
    let plain = write_bytes(&mut barred, 1, 2, 6);
    let wire = barred.encrypted(&plain);
    served.sim.sockets().client_sends(barred.socket, &wire[..wire.len() - 100]);
    served.settle();
    assert_eq!(served.change_export(TenantId(0), export(0, &["bob"])), 1);
    served.sim.sockets().client_sends(barred.socket, &wire[wire.len() - 100..]);
    served.settle();
    assert!(!served.is_open(barred.socket), "the open connection ends");
    for guest in [&mut allowed, &mut other] {
        assert_eq!(read_all(&mut served, guest, 1), [0; (BLOCKS * BLOCK) as usize]);
    }
    let refused = served.guest("volume-0", Some(authority.client(Some(&alice))));
    assert!(!refused.opened && refused.fault.unwrap().contains("no such export"));
    assert_eq!(served.change_export(TenantId(0), export(0, &["bob"])), 0, "all is as it is");
    assert_eq!(served.change_export(TenantId(0), export(0, &[])), 0);
}

/// A part of a record that is followed by nothing is half a request, too.
#[test]
fn a_record_that_does_not_come_whole_ends_its_connection_in_time() {
    let authority = Authority::new();
    let mut served = node_for(&[&[], &[]]);
    served.nbd.offer_tls(authority.config(None), true);
    for count in [1, 5, 6, 60] {
        let mut guest = served.guest("volume-0", Some(authority.client(None)));
        let plain = write_bytes(&mut guest, 1, 1, 7);
        let wire = guest.encrypted(&plain);
        served.sim.sockets().client_sends(guest.socket, &wire[..count]);
        served.settle();
        assert!(served.is_open(guest.socket));
        let began = served.sim.now_ns();
        while served.is_open(guest.socket) {
            served.tick();
        }
        assert!(served.sim.now_ns() - began < 2 * STALL_NS, "it ends at its deadline");
    }
}

/// A stream that is cut short, or damaged, in the middle of a write changes nothing and ends.
#[test]
fn a_stream_that_is_cut_short_or_damaged_changes_nothing() {
    let authority = Authority::new();
    let mut served = node_for(&[&[], &[]]);
    served.nbd.offer_tls(authority.config(None), true);
    for step in 0..40 {
        let mut guest = served.guest("volume-0", Some(authority.client(None)));
        let plain = write_bytes(&mut guest, 1, 5, 7);
        let mut wire = guest.encrypted(&plain);
        let place = wire.len() * step / 40;
        if step % 2 == 0 {
            wire.truncate(place);
        } else {
            wire[place] ^= 0x40;
        }
        served.sim.sockets().client_sends(guest.socket, &wire);
        served.settle();
        let is_open = served.sim.sockets().is_open(guest.socket);
        assert!(step % 2 == 0 || !is_open, "damage ends a stream");
        served.sim.sockets().client_closes(guest.socket);
        served.settle();
        assert_eq!((served.connections(), served.held_bytes()), (0, 0));
    }
    let mut guest = served.guest("volume-0", Some(authority.client(None)));
    assert!(read_all(&mut served, &mut guest, 1).iter().all(|byte| *byte == 0));
}

/// NetworkBlockDevice/nbd#173: the end of TLS made a server loop without end.
#[test]
fn nbd_173_the_end_of_tls_ends_the_connection_behind_what_came_before() {
    let authority = Authority::new();
    let mut served = node_for(&[&[], &[]]);
    served.nbd.offer_tls(authority.config(None), true);
    for disconnects in [false, true] {
        let mut guest = served.guest("volume-0", Some(authority.client(None)));
        let mut plain = write_bytes(&mut guest, 1, BLOCKS, 3 + u8::from(disconnects));
        if disconnects {
            guest.client.disconnect(&mut plain);
        }
        let mut wire = guest.encrypted(&plain);
        wire.extend(guest.end_tls());
        served.sim.sockets().client_sends(guest.socket, &wire);
        served.settle();
        assert!(!served.sim.sockets().is_open(guest.socket));
        assert_eq!(served.connections(), 0);
    }
    let mut guest = served.guest("volume-0", Some(authority.client(None)));
    assert_eq!(read_all(&mut served, &mut guest, 1), vec![4; (BLOCKS * BLOCK) as usize]);
}

/// Clients that say something else in place of a handshake, or nothing, keep no connection.
#[test]
fn handshakes_that_fail_or_do_not_end_keep_no_connection() {
    let authority = Authority::new();
    let mut served = node_for(&[&[], &[]]);
    served.nbd.offer_tls(authority.config(None), true);
    let agreed = b"\0\0\0\x01IHAVEOPT\0\0\0\x05\0\0\0\0";
    let after: [&[u8]; 4] = [&[], b"GET / HTTP/1.1\r\n\r\n", &[0x16, 3, 1, 0xff, 0xff], &[0; 5000]];
    for after in after {
        let socket = served.sim.sockets().connect(served.listener);
        served.settle();
        served.sim.sockets().client_sends(socket, agreed);
        served.settle();
        served.sim.sockets().client_sends(socket, after);
        let began = served.sim.now_ns();
        while served.connections() > 0 {
            served.tick();
        }
        assert!(served.sim.now_ns() - began < 2 * PATIENCE_NS, "it ends at its deadline");
        assert!(!served.sim.sockets().is_open(socket));
    }
}

#[test]
fn certificates_that_are_none_are_refused_in_words() {
    let authority = Authority::new();
    let server = authority.signs(&["server"], "server");
    let (pem, key) = (server.certificate.pem(), server.key.serialize_pem());
    let stranger = KeyPair::generate().unwrap().serialize_pem();
    let config = |certificate: &str, key: &str, authorities: Option<&str>| {
        let authorities = authorities.map(str::as_bytes);
        TlsConfig::new(certificate.as_bytes(), key.as_bytes(), authorities).map(|_| ())
    };
    assert_eq!(config(&pem, &key, Some(&authority.issuer.pem())), Ok(()));
    assert!(matches!(config("", &key, None), Err(TlsConfigError::Certificate(_))));
    assert!(matches!(config(&key, &key, None), Err(TlsConfigError::Certificate(_))));
    assert!(matches!(config(&pem, &pem, None), Err(TlsConfigError::Key(_))));
    assert!(matches!(config(&pem, &stranger, None), Err(TlsConfigError::Key(_))));
    assert!(matches!(config(&pem, &key, Some("x")), Err(TlsConfigError::Authorities(_))));
}
