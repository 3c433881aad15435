//! A walk over every route of the API: each says who may not use it, or is known here as open to all.

use super::support::{Answer, Api, Home, Server, World, vm};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Routes that tell nothing of anybody.
const PUBLIC: &[&str] = &["GET /api/v1/guard", "GET /healthz", "GET /metrics", "GET /readyz"];
/// Routes that a signature opens, and neither a token nor a team.
const SIGNED: &[&str] = &["POST /api/v1/callbacks/{id}", "POST /api/v1/hooks/{id}"];
/// Routes that show or change the caller's own things only, or what all may see.
const OWN: &[&str] = &[
    "GET /api/v1/me",
    "GET /api/v1/offerings",
    "GET /api/v1/offerings/{id}",
    "GET /api/v1/requests",
    "GET /api/v1/tokens",
    "POST /api/v1/tokens",
];

/// Routes for administrators; everybody else is told so.
const ADMINISTRATORS: &[&str] =
    &["GET /api/v1/duplicates", "GET /api/v1/offerings/{id}/rehearsal", "GET /api/v1/orphans"];

async fn call(api: &Api, method: &str, path: &str) -> Answer {
    let call = api.client.request(method.parse().unwrap(), format!("{}{path}", api.base));
    let call = match &api.token {
        Some(token) => call.bearer_auth(token),
        None => call,
    };
    let call = call.header("Idempotency-Key", "walk");
    Answer::of(if matches!(method, "POST" | "PATCH") { call.json(&json!({})) } else { call }).await
}

#[tokio::test]
async fn every_route_refuses_nobody_and_the_wrong_team() {
    let world = World::start();
    let id = world.ann.made(&vm("vm-one", json!({}))).await;
    world.ann.ended(&id).await;
    let token = world.ann.post("/tokens", "token", &json!({ "label": "walk" })).await.is(201).id();
    let hook = json!({ "title": "walk", "offering": "vm", "signature": "github", "name": "{{ id }}" });
    let hook = world.ada.post("/teams/alpha/hooks", "hook", &hook).await.is(201).id();
    let told = json!({ "label": "walk", "url": "https://example.org/", "events": ["request.failed"] });
    let told = world.ada.post("/teams/alpha/notifications", "told", &told).await.is(201).id();
    let document =
        Answer::of(world.nobody().client.get(format!("{}/openapi.json", world.server.base))).await.is(200);
    let document = document.json();

    let mut unmet: BTreeSet<&str> =
        PUBLIC.iter().chain(SIGNED).chain(OWN).chain(ADMINISTRATORS).copied().collect();
    let mut walked = 0;
    for (template, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let route = format!("{method} {template}");
            let path = filled(template, [&id, &token, &hook, &told], operation);
            walked += 1;
            unmet.remove(route.as_str());
            if PUBLIC.contains(&route.as_str()) {
                assert!(operation.get("security").is_none(), "{route}");
                call(&world.nobody(), &method, &path).await.is(200);
                continue;
            }
            assert!(operation.get("security").is_some(), "{route} does not say who may use it");
            if SIGNED.contains(&route.as_str()) {
                for api in [world.nobody(), world.ben.clone(), world.ada.clone()] {
                    let answer = call(&api, &method, &path).await;
                    if template.contains("/callbacks/") {
                        // There was never such a callback, so there is nothing to judge a signature by.
                        answer.refused(404, "not-found");
                    } else {
                        answer.refused(401, "signature-wrong");
                    }
                }
                continue;
            }
            call(&world.nobody(), &method, &path).await.refused(401, "unauthenticated");
            if ADMINISTRATORS.contains(&route.as_str()) {
                for api in [&world.ann, &world.ben] {
                    call(api, &method, &path).await.refused(403, "forbidden");
                }
            } else if !OWN.contains(&route.as_str()) {
                let answer = call(&world.ben, &method, &path).await;
                assert_eq!(answer.status, 404, "{route} lets another team in: {}", answer.text());
                answer.refused(404, "not-found");
            }
        }
    }
    assert!(unmet.is_empty(), "no such routes: {unmet:?}");
    assert!(walked >= 20, "{walked}");
    // Nothing that was refused left a trace.
    assert_eq!(world.count().await, 1);
    world.ann.get(&format!("/requests/{id}")).await.is(200);
}

fn filled(template: &str, [request, token, hook, told]: [&str; 4], operation: &Value) -> String {
    let id = match template {
        _ if template.contains("/hooks/") => hook,
        _ if template.contains("/notifications/") => told,
        _ if template.contains("/tokens/") => token,
        _ if template.contains("/offerings/") => "vm",
        _ => request,
    };
    let path = template
        .replace("{id}", id)
        .replace("{team}", "alpha")
        .replace("{type}", "vm")
        .replace("{name}", "vm-one")
        .replace("{action}", "restart")
        .replace("{delivery}", request)
        .replace("{output}", "password");
    assert!(!path.contains('{'), "a part of {template} is not known here");
    let asks_for_key = operation["parameters"].as_array().is_some_and(|parameters| {
        parameters.iter().any(|parameter| parameter["in"] == "query" && parameter["name"] == "key")
    });
    if asks_for_key { format!("{path}?key=token") } else { path }
}

#[tokio::test]
async fn pages_show_nobody_anything() {
    let world = World::start();
    let id = world.ann.made(&vm("hidden-name", json!({}))).await;
    let pages = [
        "/",
        "/requests",
        "/tokens",
        "/history",
        "/duplicates",
        "/duplicates/rehearsal",
        "/orphans",
        "/teams/alpha/requests",
        "/teams/alpha/resources",
        "/teams/alpha/notifications",
        "/teams/alpha/hooks",
        "/teams/alpha/hooks/new",
        "/offerings/vm/new",
        &format!("/requests/{id}"),
    ];
    for path in pages {
        let call =
            world.nobody().client.get(format!("{}{path}", world.server.base)).header("Accept", "text/html");
        let answer = Answer::of(call).await;
        assert!(matches!(answer.status, 302 | 303 | 401 | 404), "{path}: {}", answer.status);
        assert!(!answer.text().contains("hidden-name"), "{path}");
    }
    for place in ["", "/change", "/delete", "/actions/restart"] {
        let path = format!("{}/teams/alpha/resources/vm/hidden-name{place}", world.server.base);
        let answer = Answer::of(world.nobody().client.get(path).header("Accept", "text/html")).await;
        assert_eq!(answer.status, 303, "{place}");
        assert!(answer.header("location").unwrap().starts_with("/login?next="), "{place}");
        assert!(!answer.text().contains("Count"), "{place}");
    }
    for (path, status) in
        [("/login", 200), ("/problems/name-taken", 200), ("/nothing-here", 404), ("/problems/x", 404)]
    {
        let call =
            world.nobody().client.get(format!("{}{path}", world.server.base)).header("Accept", "text/html");
        let answer = Answer::of(call).await.is(status);
        assert!(answer.header("content-type").unwrap().starts_with("text/html"), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("script-src 'self' 'nonce-") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
    }
    // A slash at the end of a problem's type leads to the same page.
    let slash = world.nobody().client.get(format!("{}/problems/name-taken/", world.server.base));
    let answer = Answer::of(slash.header("Accept", "text/html")).await.is(308);
    assert_eq!(answer.header("location"), Some("/problems/name-taken"));
}

#[tokio::test]
async fn server_functions_show_nobody_anything() {
    let world = World::start();
    world.ann.made(&vm("hidden-name", json!({}))).await;
    for name in [
        "catalog",
        "list",
        "duplicates",
        "rehearsal",
        "orphans",
        "tokens",
        "resources",
        "notifications",
        "request",
        "open-form",
        "hooks",
        "hook",
        "hook-test",
        "delivery",
    ] {
        let call = world.nobody().client.post(format!("{}/rpc/{name}", world.server.base));
        let call = call.form(&[("team", "alpha"), ("id", "x"), ("offering", "vm")]);
        let answer = Answer::of(call).await;
        assert!(answer.status >= 400, "{name}: {} {}", answer.status, answer.text());
        assert!(!answer.text().contains("hidden-name"), "{name}");
    }
    let none = world.nobody().client.post(format!("{}/rpc/nothing", world.server.base));
    Answer::of(none).await.refused(404, "not-found");
}

#[tokio::test]
async fn the_browsers_half_is_served_and_nothing_beside_it() {
    let folder = tempfile::TempDir::new().unwrap();
    let site = folder.path().join("site");
    std::fs::create_dir_all(site.join("pkg")).unwrap();
    std::fs::write(site.join("pkg/keyturn.wasm"), [0; 4096]).unwrap();
    std::fs::write(site.join("pkg/keyturn.wasm.br"), [1; 64]).unwrap();
    std::fs::write(folder.path().join("secret"), "hidden").unwrap();
    let server = Server::start(Home::new(&[("LEPTOS_SITE_ROOT", site.to_str().unwrap())]));
    let nobody = Api::new(&server.base, None);
    let get = |path: &str| Answer::of(nobody.client.get(format!("{}{path}", server.base)));
    for name in ["/pkg/keyturn.wasm", "/pkg/keyturn_bg.wasm"] {
        let file = get(name).await.is(200);
        assert_eq!(file.header("content-type"), Some("application/wasm"));
        assert_eq!(file.header("cache-control"), Some("no-cache"));
        assert_eq!(file.body.len(), 4096);
    }
    let small =
        nobody.client.get(format!("{}/pkg/keyturn.wasm", server.base)).header("Accept-Encoding", "br, gzip");
    let small = Answer::of(small).await.is(200);
    assert_eq!(
        (small.header("content-encoding"), small.body.len()),
        (Some("br"), 64),
        "as it was compressed before"
    );
    for path in ["/pkg/", "/pkg/nothing.js", "/pkg/%2e%2e/%2e%2e/secret", "/pkg/..%2f..%2fsecret", "/secret"]
    {
        let answer = get(path).await;
        assert!(answer.status == 404 && !answer.text().contains("hidden"), "{path}: {}", answer.status);
    }
}
