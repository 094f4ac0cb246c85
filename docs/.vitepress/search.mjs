// How the site is searched. A test searches with the same options.

/** Guides come before what generated pages, decisions and measurements say of the same words. */
function boostDocument(id) {
  if (/^\/(?:adr|reference\/(?:api|benchmarks|bundle-size|faults|hostile|promises))/.test(id)) return 0.5
  return id.startsWith('/guide/coming-from/') ? 0.7 : 1
}

/** VitePress's own, and the order above. */
export const SEARCH_OPTIONS = {
  fuzzy: 0.2,
  prefix: true,
  boost: { title: 4, text: 2, titles: 1 },
  boostDocument,
}
