//! Lists as files: which format a call asks for, and how an export is sent while it is read.

use super::{
    problem::{Refusal, Result},
    query::{pairs, wrong},
    state::AppState,
};
use axum::{
    Json,
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Uri, header},
    response::{IntoResponse, Response},
};
use domain::search::Search;
use futures_util::stream;
use portal::{
    Caller,
    service::{Export, ExportFormat, ListOf, RequestQuery},
};

/// The parameter by which a link asks for a format; a header is beyond a link.
const FORMAT: &str = "format";

/// The requests that an address asks for: as a page, or all of them as a file.
pub(crate) async fn listed(
    state: &AppState,
    caller: &Caller,
    scope: ListOf,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response> {
    let (format, search) = read(uri, headers)?;
    let query = RequestQuery { scope, search };
    let Some(format) = format else {
        let page = state.portal.requests(caller, query).await?;
        return Ok(([(header::CACHE_CONTROL, "no-store")], Json(page)).into_response());
    };
    Ok(sent(state.portal.export(caller, query, format).await?, format))
}

/// The search that an address spells, and the format that it or a header asks for; none is a page as JSON.
fn read(uri: &Uri, headers: &HeaderMap) -> Result<(Option<ExportFormat>, Search)> {
    let (format, search): (Vec<_>, Vec<_>) = pairs(uri).into_iter().partition(|(name, _)| name == FORMAT);
    let search = Search::read(search).map_err(|error| Refusal(error.into()))?;
    let format = match format.as_slice() {
        [] => accepted(headers),
        [(_, word)] => match word.as_str() {
            "json" => None,
            "csv" => Some(ExportFormat::Csv),
            "ndjson" => Some(ExportFormat::Ndjson),
            _ => return Err(wrong(FORMAT, "is json, csv or ndjson")),
        },
        _ => return Err(wrong(FORMAT, "is given more than once")),
    };
    Ok((format, search))
}

/// The format that is named in `Accept` with the greatest weight; of several, the first. Whatever is not known here, and
/// anything at all, is JSON.
fn accepted(headers: &HeaderMap) -> Option<ExportFormat> {
    let mut best = (0.0, None);
    for range in headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for one in range.split(',') {
            let mut parts = one.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "text/csv" => Some(ExportFormat::Csv),
                "application/x-ndjson" => Some(ExportFormat::Ndjson),
                _ => None,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f64>().ok());
            let weight = weight.unwrap_or(1.0);
            if weight > best.0 {
                best = (weight, format);
            }
        }
    }
    best.1
}

/// An export as a response. Each part is read when the one before has gone out; a caller who hangs up ends it, and a part
/// that cannot be read breaks the connection off, so that nobody takes a beginning for all of it.
fn sent(export: Export, format: ExportFormat) -> Response {
    let parts = stream::try_unfold(export, async |mut export| {
        let part =
            export.next().await.inspect_err(|error| tracing::warn!(%error, "an export was broken off"))?;
        Ok::<_, portal::Error>(part.map(|part| (Bytes::from(part), export)))
    });
    let kind = match format {
        ExportFormat::Csv => "text/csv; charset=utf-8; header=present",
        ExportFormat::Ndjson => "application/x-ndjson",
    };
    let name = match format {
        ExportFormat::Csv => "attachment; filename=\"requests.csv\"",
        ExportFormat::Ndjson => "attachment; filename=\"requests.ndjson\"",
    };
    let mut response = Body::from_stream(parts).into_response();
    for (header, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, name),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(header, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str, accept: Option<&str>) -> Result<Option<ExportFormat>> {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(header::ACCEPT, accept.parse().unwrap());
        }
        read(&format!("/api/v1/requests?{query}").parse().unwrap(), &headers).map(|(format, _)| format)
    }

    #[test]
    fn a_file_is_sent_to_who_asks_for_one_only() {
        use ExportFormat::{Csv, Ndjson};
        for (accept, format) in [
            (None, None),
            (Some("*/*"), None),
            (Some("application/json"), None),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), None),
            (Some("text/csv"), Some(Csv)),
            (Some("TEXT/CSV; charset=utf-8"), Some(Csv)),
            (Some("application/x-ndjson, application/json;q=0.5"), Some(Ndjson)),
            (Some("application/json, text/csv;q=0.9"), None),
            (Some("application/json;q=0.2, text/csv; q=0.9"), Some(Csv)),
            (Some("text/csv;q=0"), None),
        ] {
            assert_eq!(asked("", accept).unwrap(), format, "{accept:?}");
        }
        assert_eq!(asked("format=csv&q=a", None).unwrap(), Some(Csv));
        assert_eq!(asked("format=ndjson", Some("application/json")).unwrap(), Some(Ndjson));
        assert_eq!(asked("format=json", Some("text/csv")).unwrap(), None);
        for bad in ["format=xml", "format=", "format=csv&format=csv", "format=csv&sort=name"] {
            assert!(asked(bad, None).is_err(), "{bad}");
        }
    }
}
