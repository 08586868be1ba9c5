//! Parameters of requests that make a call cost more than its hold. Drivers refuse them.

/// Why a parameter of a model call is refused, by the name that its provider gives it; none if it does not change what a call
/// costs. A list of what is allowed is the stricter check, and this is what its error says.
#[must_use]
pub fn refused_param(name: &str) -> Option<&'static str> {
    Some(match name {
        "inference_geo" | "service_tier" | "serviceTier" | "speed" => "service tiers have separate prices",
        "code_execution" | "container" | "file_search" | "mcp_servers" | "plugins" | "search_parameters"
        | "tools" | "web_search" | "web_search_options" => {
            "tools that the provider runs are billed separately: give the agent tools instead"
        }
        "audio" | "modalities" | "responseModalities" | "response_modalities" => {
            "output that is not text is billed separately"
        }
        "best_of" | "candidateCount" | "candidate_count" | "n" => "every further answer is billed",
        "prediction" => "predicted tokens that are not used are billed",
        "fallbacks" | "models" | "provider" | "route" | "transforms" => {
            "another model or provider may answer, at another price: write `fallback`"
        }
        "background" | "processing" => "background calls are billed separately and cannot be stopped",
        "maxOutputTokens" | "max_completion_tokens" | "max_output_tokens" | "max_tokens" => {
            "the output cap is what was held: write `max_output` or `max_tokens_per_step`"
        }
        _ => return None,
    })
}
