/** The frame of the page: navigation, whether the stats are live, and the form for a token if one is needed. */
import { useState } from 'preact/hooks'
import type { FoundSubject } from './answers.js'
import { keepToken, readToken } from './api.js'
import { ControlPage } from './control-page.js'
import { DenialsPage } from './denials-page.js'
import { FindForm, FindPage } from './find-form.js'
import { FleetPage } from './fleet-page.js'
import { instant } from './format.js'
import { type Live, useLive } from './live.js'
import { NowPage } from './now-page.js'
import { PolicyPage } from './policy-page.js'
import { CallerContext } from './role.js'
import { linkTo, useRoute } from './route.js'
import { ShadowPage } from './shadow-page.js'
import { SubjectPage } from './subject-page.js'
import { TokenForm } from './token-form.js'

const PAGES = [
  ['', 'Now'],
  ['denials', 'Denials'],
  ['policy', 'Policy'],
  ['fleet', 'Fleet'],
  ['shadow', 'Shadow'],
  ['control', 'Control'],
] as const

export function App() {
  const [token, setToken] = useState(readToken)
  const live = useLive(token)
  const route = useRoute()
  const [found, setFound] = useState<readonly FoundSubject[]>([])
  const useToken = (given: string | null): void => {
    keepToken(given)
    setToken(given)
  }
  if (live.connection === 'token-needed') return <TokenForm isWrong={token !== null} onToken={useToken} />
  return (
    <>
      <a class="skip" href="#main">
        Skip to the stats
      </a>
      <header>
        <h1>
          <a href={linkTo('')}>Headgate</a>
        </h1>
        <nav aria-label="Pages">
          {PAGES.map(([path, name]) => (
            <a key={path} href={linkTo(path)} aria-current={route[0] === path ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <FindForm onFound={setFound} />
        <ConnectionState live={live} />
        {token !== null && (
          <button type="button" class="quiet" onClick={() => useToken(null)}>
            Sign out
          </button>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        <CallerContext.Provider value={live.caller}>
          <Page live={live} route={route} found={found} />
        </CallerContext.Provider>
      </main>
    </>
  )
}

interface PageProps {
  readonly live: Live
  readonly route: readonly string[]
  readonly found: readonly FoundSubject[]
}

function Page({ live, route, found }: PageProps) {
  const [page, detail = ''] = route
  if (live.connection === 'forbidden') {
    return <p class="notice">This token may not read the stats. Sign out, and use one with the role read.</p>
  }
  if (live.snapshot === null) {
    return (
      <p class="notice">
        {live.connection === 'lost' ? 'The server does not answer. Trying again …' : 'Connecting …'}
      </p>
    )
  }
  if (page === 'find') return <FindPage matches={found} />
  if (page === 'subject') return <SubjectPage key={detail} reference={detail} />
  if (page === 'policy') return <PolicyPage />
  if (page === 'fleet') return <FleetPage snapshot={live.snapshot} />
  if (page === 'denials') return <DenialsPage />
  if (page === 'shadow') return <ShadowPage snapshot={live.snapshot} history={live.history} />
  if (page === 'control') return <ControlPage snapshot={live.snapshot} />
  return <NowPage snapshot={live.snapshot} history={live.history} />
}

/** Says it in words, so that nobody takes old stats for new ones. */
function ConnectionState({ live: { connection, snapshot } }: { live: Live }) {
  if (connection === 'lost') {
    const since = snapshot === null ? '' : `; stats of ${instant(snapshot.atMs)}`
    return (
      <p class="state bad" role="status">
        Not connected{since}
      </p>
    )
  }
  if (snapshot === null || connection !== 'live') {
    return (
      <p class="state" role="status">
        Connecting
      </p>
    )
  }
  const isAway = snapshot.store.state === 'down'
  return (
    <p class={isAway ? 'state bad' : 'state'} role="status">
      {isAway ? `Live, without Redis since ${instant(snapshot.store.sinceMs)}` : 'Live'}
    </p>
  )
}
