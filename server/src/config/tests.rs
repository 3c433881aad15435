use super::*;

fn read(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::read(file, variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

#[test]
fn with_nothing_set_the_documented_defaults_hold() {
    let config = read("", &[]).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:3000");
    assert_eq!(config.database, Database::Sqlite("data/keyturn.db".into()));
    assert_eq!(config.secret_key_file, Path::new("data/secret.key"));
    assert_eq!(config.guard_retention, Duration::from_hours(7 * 24));
    assert_eq!(config.guard_tombstones, Duration::from_hours(90 * 24));
    assert_eq!(config.guard_longest_retry, Duration::from_hours(76));
    assert_eq!(config.guard_wait, Duration::from_secs(5));
    assert_eq!((config.workers, config.lease), (4, Duration::from_secs(30)));
    assert_eq!((config.clock_offset_millis, config.log.as_str()), (0, "info"));
    assert_eq!((config.log_format, config.public_url), (LogFormat::Text, None));
    assert_eq!(config.outbound_allow, AllowList::public());
}

#[test]
fn a_variable_wins_over_the_file() {
    let file = "listen = \"127.0.0.1:1\"\nworkers = 2\nlease = \"5s\"";
    let config = read(file, &[("KEYTURN_LISTEN", "127.0.0.1:2"), ("KEYTURN_CLOCK_OFFSET", "-90m")]).unwrap();
    assert_eq!(config.listen.port(), 2);
    assert_eq!((config.workers, config.lease), (2, Duration::from_secs(5)));
    assert_eq!(config.clock_offset_millis, -5_400_000);
}

#[test]
fn the_key_lies_beside_the_database_unless_it_is_named() {
    let config = read("", &[("KEYTURN_DATABASE_URL", "sqlite:///srv/k/x.db")]).unwrap();
    assert_eq!(config.database, Database::Sqlite("/srv/k/x.db".into()));
    assert_eq!(config.secret_key_file, Path::new("/srv/k/secret.key"));
    let named = read("secret_key_file = \"/etc/k\"", &[]).unwrap();
    assert_eq!(named.secret_key_file, Path::new("/etc/k"));
}

#[test]
fn a_password_in_the_database_address_is_never_shown() {
    for (given, shown) in [
        (
            "postgres://kt:hu@sh@db.example:5432/keyturn?sslmode=require",
            "postgres://kt@db.example:5432/keyturn",
        ),
        ("postgresql://kt:hush@db/keyturn", "postgresql://kt@db/keyturn"),
        ("postgres://db/keyturn?user=kt&password=hush", "postgres://db/keyturn"),
    ] {
        let config = read("", &[("KEYTURN_DATABASE_URL", given)]).unwrap();
        assert_eq!(config.database.to_string(), shown);
        assert!(!format!("{config:?}").contains("sh@") && !format!("{config:?}").contains("hush"));
        assert_eq!(config.secret_key_file, Path::new("data/secret.key"));
    }
    for wrong in ["postgres://kt:hush@db/keyturn?pasword=hush", "postgre://kt:hush@db/keyturn"] {
        let error = read("", &[("KEYTURN_DATABASE_URL", wrong)]).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}

#[test]
fn what_is_wrong_stops_the_start_with_its_name() {
    let variables = [
        ("KEYTURN_LISTEN", "3000"),
        ("KEYTURN_LISTEN", ""),
        ("KEYTURN_DATABASE_URL", "mysql://db/keyturn"),
        ("KEYTURN_DATABASE_URL", "postgres://"),
        ("KEYTURN_DATABASE_URL", "postgres://db/keyturn?pasword=hush"),
        ("KEYTURN_DATABASE_URL", "data/keyturn.db"),
        ("KEYTURN_DATABASE_URL", "sqlite://"),
        ("KEYTURN_DATABASE_URL", "sqlite::memory:"),
        ("KEYTURN_CATALOG", ""),
        ("KEYTURN_GUARD_RETENTION", "7"),
        ("KEYTURN_GUARD_RETENTION", "0d"),
        ("KEYTURN_GUARD_RETENTION", "-7d"),
        ("KEYTURN_GUARD_RETENTION", "99999999999999999999d"),
        ("KEYTURN_GUARD_TOMBSTONES", "long"),
        ("KEYTURN_GUARD_LONGEST_RETRY", "7 d"),
        ("KEYTURN_GUARD_WAIT", "61s"),
        ("KEYTURN_WORKERS", "-1"),
        ("KEYTURN_WORKERS", "257"),
        ("KEYTURN_LEASE", "0s"),
        ("KEYTURN_LEASE", "500ms"),
        ("KEYTURN_CLOCK_OFFSET", "yesterday"),
        ("KEYTURN_CLOCK_OFFSET", "--1d"),
        ("KEYTURN_OUTBOUND_ALLOW", "10.1.2.3/8"),
        ("KEYTURN_OUTBOUND_ALLOW", "host:80"),
        ("KEYTURN_SECRET_KEY_FILE", ""),
        ("KEYTURN_PUBLIC_URL", "portal.example"),
        ("KEYTURN_PUBLIC_URL", "https://portal.example/path"),
        ("KEYTURN_LOG", "loud=very"),
        ("KEYTURN_LOG", "banana"),
        ("KEYTURN_LOG", "info,banana"),
        ("KEYTURN_LOG", "hyper="),
        ("KEYTURN_LOG", ""),
        ("KEYTURN_LOG_FORMAT", "xml"),
        ("KEYTURN_RETENTION", "7d"),
        ("KEYTURN_listen", "127.0.0.1:1"),
    ];
    for (name, value) in variables {
        let error = read("", &[(name, value)]).unwrap_err();
        assert_eq!(error.setting, name, "{value}");
    }
    for (file, setting) in [
        ("retention = \"7d\"", "retention"),
        ("workers = true", "workers"),
        ("[guard]\nretention = \"7d\"", "guard"),
        ("listen = ", "--config"),
        ("listen = \"a\"\nlisten = \"b\"", "--config"),
    ] {
        assert_eq!(read(file, &[]).unwrap_err().setting, setting, "{file}");
    }
}

#[test]
fn keys_outlive_the_longest_retry_by_a_tenth() {
    let retry = |retention| {
        read("", &[("KEYTURN_GUARD_RETENTION", retention), ("KEYTURN_GUARD_LONGEST_RETRY", "100h")])
    };
    assert!(retry("110h").is_ok());
    let error = retry("109h").unwrap_err();
    assert_eq!(error.setting, "KEYTURN_GUARD_RETENTION");
    assert!(error.why.contains("110h") && error.why.contains("KEYTURN_GUARD_LONGEST_RETRY"), "{error}");
    assert!(
        read("guard_longest_retry = \"8d\"", &[])
            .unwrap_err()
            .to_string()
            .contains("KEYTURN_GUARD_RETENTION")
    );
}

#[test]
fn the_builds_own_variables_are_no_settings() {
    assert!(read("", &[("KEYTURN_GOAL", "run"), ("KEYTURN_TOOLS", "/x")]).is_ok());
}
