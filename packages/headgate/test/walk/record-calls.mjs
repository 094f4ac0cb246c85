// Says which functions of a package ran while some work was done.
import { Session } from 'node:inspector/promises'

/** Does the work twenty times first, so that what happens once is not taken for a part of it. `folder`: '/headgate/dist/'. */
export async function recordCalls(folder, work) {
  for (let count = 0; count < 20; count++) await work()
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await session.post('Profiler.takePreciseCoverage')
  await work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  return result
    .filter(script => script.url.includes(folder))
    .map(script => ({
      file: script.url.slice(script.url.indexOf(folder) + folder.length).replace(/\.js$/, '.ts'),
      functions: script.functions
        .filter(({ ranges, functionName }) => ranges[0].count > 0 && functionName !== '')
        .map(({ functionName }) => functionName),
    }))
    .filter(({ functions }) => functions.length > 0)
}
