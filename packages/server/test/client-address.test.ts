import { describe, expect, test } from 'vitest'
import { limitedAddress, peerAddress } from '../src/gateway/client-address.js'

describe('one client has one address, however it is spelt', () => {
  test.each([
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

  test.each([
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

test('what is no address is none', () => {
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
