// The pages of the site, in the order in which they are listed. A page in docs/ that is missing here fails the build.

export const NAVIGATION = [
  {
    title: 'Begin',
    pages: [
      'guide/quickstart.md',
      'guide/algorithms.md',
      'guide/tiers-and-bursts.md',
      'guide/roll-out-safely.md',
    ],
  },
  {
    title: 'In your app',
    pages: [
      ...['frameworks', 'fetch', 'commonjs-and-jest', 'who-is-asking', 'client-address', 'secrets'],
      ...['batches', 'llm-proxy', 'call-an-api', 'testing'],
    ].map(name => `guide/${name}.md`),
  },
  {
    title: 'Coming from',
    pages: [
      'express-rate-limit',
      'rate-limiter-flexible',
      'upstash-ratelimit',
      'fastify-rate-limit',
      'nestjs-throttler',
    ].map(name => `guide/coming-from/${name}.md`),
  },
  {
    title: 'In front of anything',
    pages: ['gateway', 'forward-auth', 'envoy'].map(name => `guide/${name}.md`),
  },
  {
    title: 'Redis and operation',
    pages: ['redis', 'speed', 'how-far-does-it-go', 'failure', 'operate', 'upgrade'].map(
      name => `guide/${name}.md`,
    ),
  },
  { title: 'Reference', folder: 'reference/' },
  { title: 'Decisions', folder: 'adr/' },
]
