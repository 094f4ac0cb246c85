import { runProgram } from './cli/program.js'

// The reader of our output may go away: `headgate functions print | head`.
process.stdout.on('error', error => {
  if ((error as NodeJS.ErrnoException).code === 'EPIPE') process.exit()
})
process.exitCode = await runProgram(process.argv.slice(2))
