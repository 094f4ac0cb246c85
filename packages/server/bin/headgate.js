#!/usr/bin/env node
// Part of the repository, not of the build: npm links the command when it installs, and nothing is built yet by then.
import '../dist/main.js'
