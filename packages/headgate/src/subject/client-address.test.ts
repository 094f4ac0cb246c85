import { isIP } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createClientAddress, limitedAddress, MAX_PROXIES, peerAddress } from './client-address.js'

describe('one client has one address, however it is spelt', () => {
  it.each([
    '1.2.3.4',
    '::ffff:1.2.3.4',
    '::FFFF:1.2.3.4',
    '::ffff:102:304',
    '0:0:0:0:0:ffff:102:304',
    '0000:0000:0000:0000:0000:ffff:0102:0304',
    '::ffff:1.2.3.4%eth0',
  ])('%s is 1.2.3.4', spelling => {
    expect(limitedAddress(spelling)).toBe('1.2.3.4')
    expect(peerAddress(spelling)).toBe('1.2.3.4')
  })

  it.each([
    ['2001:db8:0:0:1::1', '2001:db8::1:0:0:1', '2001:db8::/64'],
    ['2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80::1', 'fe80::/64'],
    ['fe80::2%b', 'fe80::2', 'fe80::/64'],
    ['::1', '::1', '::/64'],
    // Dots do not make an address IPv4: only ::ffff:0:0/96 is.
    ['2001:db8::1.2.3.4', '2001:db8::102:304', '2001:db8::/64'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304', '64:ff9b::/64'],
    ['::1.2.3.4', '::102:304', '::/64'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3', '1:0:0:2::/64'],
  ])('%s is %s of %s', (spelling, address, network) => {
    expect(peerAddress(spelling)).toBe(address)
    expect(limitedAddress(spelling)).toBe(network)
  })
})

it('text that is no address yields no address', () => {
  for (const text of [
    undefined,
    '',
    'localhost',
    '127.1',
    '0177.0.0.1',
    '2130706433',
    '1.2.3.4/8',
    '::1/64',
    '%eth0',
  ]) {
    expect(peerAddress(text)).toBeNull()
    expect(limitedAddress(text)).toBeNull()
  }
})

it('we accept exactly the texts that Node takes for addresses', () => {
  const part = fc.oneof(
    fc.constantFrom(':', '::', '.', '0', 'ffff', '1.2.3.4', '255', '256', '01', 'g', '12345'),
    fc.stringMatching(/^[0-9a-fA-F]{1,4}$/),
  )
  const text = fc.oneof(
    fc.array(part, { maxLength: 16 }).map(parts => parts.join('')),
    fc
      .array(fc.stringMatching(/^[0-9a-f]{1,4}$/), { minLength: 6, maxLength: 9 })
      .map(parts => parts.join(':')),
    fc.ipV4(),
    fc.ipV6(),
  )
  fc.assert(
    fc.property(text, text => {
      expect(peerAddress(text) !== null).toBe(isIP(text) !== 0)
    }),
    { numRuns: 5_000 },
  )
})

describe('who a request comes from', () => {
  const PROXY = '10.0.0.1'
  const behindProxies = createClientAddress({ trustedProxies: ['10.0.0.0/8', 'fd00::/8', '192.0.2.7'] })

  it('the client is the peer while nobody is trusted, whatever the request says', () => {
    const alone = createClientAddress()
    for (let request = 0; request < 1_000; request++) {
      expect(alone('203.0.113.9', `198.51.100.${request % 256}, ${PROXY}`)).toBe('203.0.113.9')
    }
    expect(alone(PROXY, '198.51.100.1')).toBe(PROXY)
    expect(alone(undefined, '198.51.100.1')).toBeNull()
  })

  it.each<[string, string | readonly string[] | undefined, string]>([
    ['nothing said', undefined, PROXY],
    ['an empty header', '', PROXY],
    ['one entry', '203.0.113.9', '203.0.113.9'],
    ['forged entries left of it', '1.1.1.1, 2.2.2.2, 203.0.113.9', '203.0.113.9'],
    ['proxies of ours right of it', '1.1.1.1, 203.0.113.9, 192.0.2.7, 10.9.9.9', '203.0.113.9'],
    ['several lines', ['1.1.1.1, 2.2.2.2', '203.0.113.9', '10.9.9.9'], '203.0.113.9'],
    ['a port', '203.0.113.9:4711', '203.0.113.9'],
    ['brackets', '[2001:db8::9]', '2001:db8::9'],
    ['brackets and a port', '[2001:DB8:0:0::9]:4711', '2001:db8::9'],
    ['IPv4 as IPv6', '::ffff:203.0.113.9', '203.0.113.9'],
    ['a proxy of ours as IPv6', '203.0.113.9, ::ffff:10.9.9.9, fd00::1', '203.0.113.9'],
    ['no blanks, and too many', '1.1.1.1,203.0.113.9 ,\t10.9.9.9 , ', '203.0.113.9'],
    ['proxies of ours alone', '10.3.3.3, 10.9.9.9', '10.3.3.3'],
    ['unknown', 'unknown', PROXY],
    ['unknown left of ours', '203.0.113.9, unknown, 10.9.9.9', PROXY],
    ['garbage', '203.0.113.9, <script>', PROXY],
    ['brackets around IPv4', '[203.0.113.9]', PROXY],
    ['octal', '0313.0.113.9', PROXY],
    ['a number', '3405803785', PROXY],
    ['a network', '203.0.113.9/32', PROXY],
    ['more proxies than anybody has', `203.0.113.9${', 10.9.9.9'.repeat(40)}`, PROXY],
  ])('a client behind a trusted proxy is found: %s', (_name, header, expected) => {
    expect(behindProxies(PROXY, header)).toBe(expected)
  })

  it('the client is the peer when the peer is not one of our proxies', () => {
    expect(behindProxies('203.0.113.1', '198.51.100.1')).toBe('203.0.113.1')
  })

  it.each([
    ['forged', [...Array(10_000).fill('1.1.1.1'), '203.0.113.9'], '203.0.113.9', 1],
    ['ours', ['203.0.113.9', ...Array(10_000).fill('10.9.9.9')], PROXY, MAX_PROXIES + 1],
  ])('a client is found without reading 10,000 lines that are %s', (_name, lines, expected, most) => {
    let linesRead = 0
    const counted = new Proxy<string[]>(lines, {
      get(target, key) {
        if (typeof key === 'string' && /^\d+$/.test(key)) linesRead += 1
        return Reflect.get(target, key)
      },
    })
    expect(behindProxies(PROXY, counted)).toBe(expected)
    expect(linesRead).toBeLessThanOrEqual(most)
  })

  // Work that grows with the square of the length would not end within a test's time.
  it.each([
    ['forged', `${'1.1.1.1, '.repeat(1_000_000)}203.0.113.9`, '203.0.113.9'],
    ['ours', `203.0.113.9${', 10.9.9.9'.repeat(1_000_000)}`, PROXY],
    ['empty', ','.repeat(1_000_000), PROXY],
    ['one, without end', '1'.repeat(1_000_000), PROXY],
  ])('a client is found in a line of a million entries that are %s', (_name, header, expected) => {
    expect(behindProxies(PROXY, header)).toBe(expected)
  })

  it.each<[unknown, string]>([
    [true, 'expected a list of addresses and networks, everybody, or { hops }; got true'],
    [1, 'expected a list of addresses and networks, everybody, or { hops }; got 1'],
    ['all', 'expected a list of addresses and networks, everybody, or { hops }; got "all"'],
    [{ hops: 0 }, 'trustedProxies.hops: expected a whole number from 1 to 32; got 0'],
    [{ hops: 1.5 }, 'trustedProxies.hops: expected a whole number'],
    [{ hops: 1, networks: [] }, 'trustedProxies.networks: expected hops alone'],
    [[1], 'expected an address or a network'],
    [['0.0.0.0/0'], 'expected a network of at least /8'],
    [['0.0.0.0/1', '128.0.0.0/1'], 'expected a network of at least /8'],
    [['1.2.3.4/7'], 'expected a network of at least /8'],
    [['::/0'], 'expected a network without ::ffff:0:0/96'],
    [['::/7'], 'expected a network without ::ffff:0:0/96'],
    [['::/8'], 'expected a network without ::ffff:0:0/96'],
    [['::/64'], 'expected a network without ::ffff:0:0/96'],
    [['::/80'], 'expected a network without ::ffff:0:0/96'],
    [['::fffe:0:0/95'], 'expected a network without ::ffff:0:0/96'],
    [['::ff00:0:0/88'], 'expected a network without ::ffff:0:0/96'],
    [['::1.2.3.4/80'], 'expected a network without ::ffff:0:0/96'],
    [['2000::/3'], 'expected a network of at least /16'],
    [['2000::/7'], 'expected a network of at least /16'],
    [['fc00::/6'], 'expected a network of at least /16'],
    [['fe80::/9'], 'expected a network of at least /16'],
    [['::ffff:0:0/96'], 'expected an IPv4 network written with dots'],
    [['::ffff:0.0.0.0/96'], 'expected an IPv4 network written with dots'],
    [['0:0:0:0:0:ffff::/96'], 'expected an IPv4 network written with dots'],
    [['::ffff:10.0.0.0/8'], 'expected an IPv4 network written with dots'],
    [['::ffff:a00:0/104'], 'expected an IPv4 network written with dots'],
    [['10.0.0.1/8'], 'expected 10.0.0.0/8'],
    [['2001:db8::1/32'], 'expected 2001:db8::/32'],
    [['10.0.0.0/33'], 'expected an address or a network'],
    [['10.0.0.0/'], 'expected an address or a network'],
    [['10.0.0.0/8/8'], 'expected an address or a network'],
    [['fe80::1%eth0'], 'expected an address or a network'],
    [['loopback'], 'expected an address or a network'],
  ])('the client address rejects to trust %j', (trustedProxies, message) => {
    const make = () => createClientAddress({ trustedProxies: trustedProxies as string[] })
    expect(make).toThrow(message)
  })

  it.each(['fc00::/7', 'fd00::/8', 'fe80::/10', '2600:1f00::/24', '10.0.0.0/8', '::1'])(
    'the client address may trust %s',
    own => {
      expect(() => createClientAddress({ trustedProxies: [own] })).not.toThrow()
    },
  )

  it('no network that is taken holds most of IPv4: each is tried on 1,000 addresses', () => {
    const network = fc
      .tuple(fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('::', '::ffff:0:0', '0::')), fc.nat(128))
      .map(([address, bits]) => `${address}/${bits}`)
    const strangers = Array.from({ length: 256 }, (_, octet) => `${octet}.7.7.7`)
    fc.assert(
      fc.property(network, trusted => {
        let clientAddress: ReturnType<typeof createClientAddress>
        try {
          clientAddress = createClientAddress({ trustedProxies: [trusted] })
        } catch {
          return
        }
        const believed = strangers.filter(peer => clientAddress(peer, '203.0.113.9') !== peer)
        expect(believed.length).toBeLessThanOrEqual(1)
      }),
      { numRuns: 1_000 },
    )
  })

  it('trusts() tells which peers are our proxies', () => {
    const { trusts } = createClientAddress({ trustedProxies: ['10.0.0.0/8'] })
    expect(['10.1.1.1', '::ffff:10.1.1.1', '11.1.1.1', 'x', undefined].map(trusts)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ])
    expect(createClientAddress().trusts('10.1.1.1')).toBe(false)
  })

  it('the client is the leftmost entry if everybody is trusted', () => {
    const clientAddress = createClientAddress({ trustedProxies: 'everybody' })
    expect(clientAddress('203.0.113.1', '198.51.100.1, 192.0.2.1')).toBe('198.51.100.1')
    expect(clientAddress('203.0.113.1', undefined)).toBe('203.0.113.1')
    expect(clientAddress('203.0.113.1', 'garbage, 192.0.2.1')).toBe('203.0.113.1')
  })

  it.each([
    [1, '1.1.1.1, 2.2.2.2, 3.3.3.3', '3.3.3.3'],
    [2, '1.1.1.1, 2.2.2.2, 3.3.3.3', '2.2.2.2'],
    // A request that bypassed the first proxy is attributed to the address the second one saw.
    [3, '2.2.2.2, 3.3.3.3', '2.2.2.2'],
    [1, '', '203.0.113.1'],
  ])('a client behind %i proxies by number: %s is %s', (hops, header, expected) => {
    const clientAddress = createClientAddress({ trustedProxies: { hops } })
    expect(clientAddress('203.0.113.1', header)).toBe(expected)
  })
})

describe('Forwarded', () => {
  const PROXY = '10.0.0.1'
  const clientAddress = createClientAddress({ trustedProxies: ['10.0.0.0/8'], forwardedHeader: 'forwarded' })

  it.each<[string, string | readonly string[], string]>([
    ['an address', 'for=203.0.113.9', '203.0.113.9'],
    ['with more beside it', 'proto=https;For=203.0.113.9;by=10.0.0.1', '203.0.113.9'],
    ['quoted, with a port', 'for="203.0.113.9:4711"', '203.0.113.9'],
    ['IPv6', 'for="[2001:db8:0::9]:4711";host="a;b"', '2001:db8::9'],
    ['forged on the left', 'for=1.1.1.1, for=203.0.113.9;proto=http, for=10.0.0.9', '203.0.113.9'],
    ['a quote left open on the left', 'for=1.1.1.1;host="x, for=203.0.113.9', '203.0.113.9'],
    ['several lines', ['for=1.1.1.1', 'for=203.0.113.9'], '203.0.113.9'],
    ['hidden', 'for=_hidden', PROXY],
    ['unknown', 'for=unknown', PROXY],
    ['nobody', 'proto=https', PROXY],
    ['twice in one', 'for=1.1.1.1;for=203.0.113.9', PROXY],
    // The client chooses the host, so no part of it may pass for an element of its own.
    ['a host with an element in it', 'for=203.0.113.9;host="x, for=6.6.6.6"', PROXY],
    ['and more after it', 'for=203.0.113.9;host="x, for=6.6.6.6;y="', PROXY],
    ['and a quote escaped', 'for=203.0.113.9;host="x, for=6.6.6.6;y=\\""', PROXY],
    ['not even a pair', '203.0.113.9', PROXY],
  ])('the header Forwarded is read: %s', (_name, header, expected) => {
    expect(clientAddress(PROXY, header)).toBe(expected)
  })

  it('Forwarded is read where it is named, and X-Forwarded-For where that is', () => {
    expect(clientAddress.header).toBe('forwarded')
    expect(createClientAddress().header).toBe('x-forwarded-for')
    const make = () => createClientAddress({ forwardedHeader: 'x-real-ip' as 'forwarded' })
    expect(make).toThrow('forwardedHeader: expected x-forwarded-for or forwarded; got "x-real-ip"')
  })

  // Work that grows with the square of the length would not end within a test's time.
  it.each([
    '"'.repeat(500_000),
    `for="${'\\'.repeat(500_000)}`,
    ';'.repeat(500_000),
    `a=b;${'c'.repeat(500_000)}`,
  ])('a hostile element of Forwarded is ignored, however long it is: case %#', element => {
    expect(clientAddress(PROXY, element)).toBe(PROXY)
  })
})
