import { runProgram } from './cli/program.js'

process.exitCode = await runProgram(process.argv.slice(2))
