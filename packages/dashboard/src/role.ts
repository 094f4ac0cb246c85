/** The role of whoever looks at the page: buttons that the server would reject are not shown. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Caller } from './answers.js'

export const CallerContext = createContext<Caller | null>(null)

/** Whether the caller may change something. */
export function useMayChange(): boolean {
  return useContext(CallerContext)?.role === 'administer'
}
