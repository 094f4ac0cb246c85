/** Headers with which a request contradicts its connection and its request line. Names with hyphens. */

/**
 * Claims about the client's address, in the headers of proxies, CDNs and platforms. Frameworks believe them; from
 * anybody but a trusted proxy they are forged.
 */
export const ADDRESS_CLAIMS: readonly string[] = [
  'ali-cdn-real-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-pseudo-ipv4',
  'client-ip',
  'do-connecting-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'http-client-ip',
  'proxy-client-ip',
  'remote-addr',
  'true-client-ip',
  'wl-proxy-client-ip',
  'x-appengine-remote-addr',
  'x-appengine-user-ip',
  'x-azure-clientip',
  'x-azure-socketip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-envoy-external-address',
  'x-nf-client-connection-ip',
  'x-original-forwarded-for',
  'x-originating-ip',
  'x-proxyuser-ip',
  'x-remote-addr',
  'x-remote-ip',
  'x-vercel-forwarded-for',
]

/**
 * Claims about the request's target. Rules are found by its request line, so headers that make a server read
 * another are never passed on.
 */
export const TARGET_CLAIMS: readonly string[] = [
  'x-host',
  'x-http-host-override',
  'x-original-host',
  'x-original-uri',
  'x-original-url',
  'x-rewrite-uri',
  'x-rewrite-url',
]
