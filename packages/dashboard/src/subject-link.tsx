import { linkTo } from './route.js'

/** A caller, by as much of its name as may be shown; if that is not all of it, with its reference. */
export function SubjectLink({ subject, reference }: { subject: string; reference: string }) {
  return (
    <>
      <a href={linkTo('subject', reference)}>{subject}</a>
      {subject.includes('…') && (
        <>
          {' '}
          <code class="soft">{reference}</code>
        </>
      )}
    </>
  )
}
