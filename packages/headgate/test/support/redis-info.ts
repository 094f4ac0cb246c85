import { sendCommand } from './resp.ts'

/** Returns the fields of one INFO section, or of CLUSTER INFO, which has the same format. */
export async function readInfo(
  port: number,
  ...command: [string, ...string[]]
): Promise<Record<string, string>> {
  const reply = await sendCommand(port, ...command)
  if (typeof reply !== 'string') throw new Error(`${command.join(' ')} on port ${port}: ${String(reply)}`)
  const fields = reply.split('\r\n').filter(line => line.includes(':'))
  return Object.fromEntries(
    fields.map(line => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1)]
    }),
  )
}

/** Whether a replica holds its primary's data. Killing the primary before that loses everything. */
export async function isReplicaInSync(port: number): Promise<boolean> {
  const info = await readInfo(port, 'INFO', 'replication')
  return info.role === 'slave' && info.master_link_status === 'up'
}
