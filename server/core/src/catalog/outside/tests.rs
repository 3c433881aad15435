//! Offerings whose things are made elsewhere, as authors write them, right and wrong.

use crate::{
    catalog::{Catalog, OFFERING_FILE},
    provisioner::exec::Site,
};
use std::fs;

const HEAD: &str = "title: A machine
description: For tests.
category: Tests
version: '1'
parameters: { type: object, properties: { size: { type: string, default: small } } }
provisioner:
";

const HTTP: &str = "  http:
    secrets: { token: { env: MACHINES_TOKEN } }
    callback: true
    apply:
      url: https://machines.test/machines
      headers: { Authorization: 'Bearer {{ secrets.token }}' }
      body: { name: '{{ name }}', list: ['{{ parameters.size }}', 1, null] }
      answer: { in_progress: status == 202, outputs: { address: body.address } }
    observe:
      url: 'https://machines.test/machines/{{ name }}'
      ours: body.owner == made_by
    destroy: { method: DELETE, url: 'https://machines.test/machines/{{ name }}' }
";

const KESTRA: &str = "  kestra:
    url: https://kestra.test
    namespace: company.team
    token: { file: /run/secrets/kestra }
    apply: { flow: make, inputs: { name: '{{ name }}' } }
    destroy: { flow: remove }
";

/// The places and texts of all mistakes.
fn mistakes(yaml: &str) -> Vec<(u64, String)> {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("machine")).unwrap();
    fs::write(folder.path().join("machine").join(OFFERING_FILE), yaml).unwrap();
    let site = Site { guard: "/nonexistent/guard".into(), state: folder.path().join("state") };
    let catalog = Catalog::load(folder.path(), &site);
    let mistakes = catalog.broken().iter().flat_map(|broken| broken.mistakes.clone());
    mistakes.map(|mistake| (mistake.line, mistake.message)).collect()
}

#[test]
fn what_the_readme_shows_is_read() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let mut seen = 0;
    for part in readme.split("\n    provisioner:\n").skip(1) {
        let lines = part.lines().take_while(|line| line.starts_with("      ")).map(|line| &line[4..]);
        let yaml = lines.collect::<Vec<_>>().join("\n");
        assert_eq!(mistakes(&format!("{HEAD}{yaml}")), [], "{yaml}");
        seen += 1;
    }
    assert_eq!(seen, 2);
    for good in [HTTP, KESTRA] {
        assert_eq!(mistakes(&format!("{HEAD}{good}")), []);
    }
}

/// Each row: a piece of the good offering, what stands in its place, and where and what is told.
#[test]
fn each_mistake_is_told_with_its_line() {
    for (good, old, new, line, told) in [
        (HTTP, "'{{ name }}', list", "'{{ name', list", 13, "cannot be read"),
        (HTTP, "status == 202", "status ==", 14, "\"in_progress\" cannot be read"),
        (HTTP, "body.address", "'body.'", 14, "\"address\" cannot be read"),
        (
            HTTP,
            "url: https://machines.test/machines",
            "url: ftp://machines.test",
            11,
            "must begin with http://",
        ),
        (HTTP, "Bearer {{ secrets.token }}", "Bearer {% x %}", 12, "\"Authorization\" cannot be read"),
        (HTTP, "Authorization:", "Idempotency-Key:", 12, "no header that can be set here"),
        (HTTP, "method: DELETE", "method: GET", 18, "must be POST, PUT, PATCH or DELETE"),
        (HTTP, "env: MACHINES_TOKEN", "env: KEYTURN_SECRET", 8, "the portal's own settings"),
        (HTTP, "env: MACHINES_TOKEN", "env: A, file: b", 8, "exactly one of env and file"),
        (HTTP, "callback: true", "callback: { secrets: [other] }", 9, "there is no secret \"other\""),
        (HTTP, "callback: true", "callback: { secrets: [a, b, c] }", 9, "one secret, or two"),
        (HTTP, "callback: true", "call_timeout: 1h", 9, "\"call_timeout\" must be a time"),
        (HTTP, "callback: true", "actions: { restart: { url: 'http://x' } }", 9, "no action \"restart\""),
        (HTTP, "callback: true", "update: { url: 'http://x' }", 9, "needs \"updates: true\""),
        (HTTP, "status == 202,", "status == 202, poll: headers.location,", 8, "this needs \"poll\""),
        (HTTP, "      ours: body.owner == made_by\n", "", 16, "needs the field \"ours\""),
        (HTTP, "    destroy:", "    remove:", 18, "no field \"remove\""),
        (KESTRA, "url: https://kestra.test", "url: kestra.test", 8, "must begin with http://"),
        (
            KESTRA,
            "    apply:",
            "    callback: { secrets: [other] }\n    apply:",
            11,
            "there is no secret \"other\"",
        ),
        (KESTRA, "'{{ name }}'", "'{{ name + }}'", 11, "cannot be read"),
        (KESTRA, "inputs: { name:", "inputs: { 'na\"me':", 11, "no name of an input"),
        (KESTRA, "flow: remove", "inputs: {}", 12, "needs the field \"flow\""),
    ] {
        assert!(good.contains(old), "{old}");
        let found = mistakes(&format!("{HEAD}{}", good.replacen(old, new, 1)));
        assert!(
            found.iter().any(|(place, message)| *place == line && message.contains(told)),
            "{new}: {found:?}"
        );
    }
    let updates = format!("updates: true\n{HEAD}{HTTP}");
    assert!(mistakes(&updates)[0].1.contains("so this needs \"update\""), "{:?}", mistakes(&updates));
}
