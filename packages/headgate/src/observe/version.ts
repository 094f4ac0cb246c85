/** The version of this package, as metrics and reports tell it; a test holds it to package.json. */
export const VERSION = '0.1.0'
