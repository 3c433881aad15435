//! Addresses inside the portal.

/// The text as one part of an address: everything but unreserved characters is percent-encoded (RFC 3986, 2.3).
#[must_use]
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.extend(char::from_digit(u32::from(digit), 16).map(|digit| digit.to_ascii_uppercase()));
            }
        }
    }
    out
}

/// The address if it leads to a page of this portal, never to another site.
#[must_use]
pub fn local(address: &str) -> Option<&str> {
    let plain = address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    (address.starts_with('/') && !address.starts_with("//") && plain).then_some(address)
}

/// Where a form on the page of this address is posted to without script: not to that address itself, whose page a browser
/// forgets once something is posted there (RFC 9111, section 4.4), and with it, on the way back, the form's ID.
#[must_use]
pub fn sent(page: &str) -> String {
    format!("{page}?send")
}

/// The login page that leads back to `next`.
#[must_use]
pub fn login(next: &str) -> String {
    match local(next) {
        None | Some("/") => "/login".to_owned(),
        Some(next) => format!("/login?next={}", encode(next)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_address_is_encoded() {
        assert_eq!(encode("/a b?é&x=1-._~"), "%2Fa%20b%3F%C3%A9%26x%3D1-._~");
    }

    #[test]
    fn only_addresses_of_this_portal_are_followed() {
        for good in ["/", "/requests?cursor=x", "/offerings/vm/new?resume=1#f"] {
            assert_eq!(local(good), Some(good));
        }
        for bad in [
            "",
            "requests",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\nb",
            "/a b",
            "/é",
        ] {
            assert_eq!(local(bad), None, "{bad:?}");
        }
        assert_eq!(login("//evil.example"), "/login");
        assert_eq!(login("/requests?a=b"), "/login?next=%2Frequests%3Fa%3Db");
    }
}
