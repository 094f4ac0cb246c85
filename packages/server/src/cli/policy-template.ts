/** The policy file that `headgate init` writes: what is in force is plain, suggestions are behind `# `. */
export const POLICY_TEMPLATE = `# yaml-language-server: $schema=./node_modules/headgate/headgate.schema.json

## Rate limits. Lines with one # are examples to switch on; lines with two explain.
## Check the file with: headgate rules validate. See its effect with: headgate rules explain POST /login

## Where headgate serve sends admitted requests.
# upstream: http://127.0.0.1:3000

## Classes of caller. "default" is anonymous, free, pro, enterprise and internal; anonymous has 10 requests a minute
## with 20 at once, 100 an hour and 1,000 a day.
tiers: default

## The tier or policy of all other callers.
default: { tier: anonymous }

## Watch first: with "shadow" everything is counted and nobody is denied.
# mode: shadow

## Limits by name, charged together or not at all. Windows: 500ms, 10s, 1m, 1h, 1d.
policies:
  login:
    - { algorithm: sliding-window-log, limit: 5, window: 1m }
    - { algorithm: sliding-window-counter, limit: 20, window: 1h }
#   uploads: { algorithm: token-bucket, capacity: 20, refillPerSecond: 0.5 }

## Which limits apply to which requests; the first matching rule is used. Paths: :id is any one segment, /* any rest.
## "closed" denies while Redis is away instead of deciding in this process.
rules:
  - { name: login, match: { method: POST, path: /login, subject: ip }, policy: login, onStoreFailure: closed }
#   - { name: uploads, match: { method: [POST, PUT], path: /uploads/* }, policy: uploads, mode: shadow }

## Single callers.
# subjects:
#   "user:42": { tier: pro }

## Units a request takes; the default is 1.
# costs:
#   POST /reports: 10

## Not limited at all, unless a rule names the path.
# skip: { prefixes: [/assets], extensions: [css, js, png, svg] }

## Proxies in front whose X-Forwarded-For is trusted: their addresses, and nothing wider.
# trustedProxies: [10.8.0.4, 10.8.0.5]

## Keeps the limits of several products on one Redis apart.
# tenant: shop
`
