declare module 'express-4' {
  export { default } from 'express'
}
