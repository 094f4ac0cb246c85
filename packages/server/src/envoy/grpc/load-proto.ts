import { fileURLToPath } from 'node:url'
import { loadSync, type MethodDefinition, type ServiceDefinition } from '@grpc/proto-loader'

/** Found from both `src` and `dist`. */
const FOLDER = fileURLToPath(new URL('../../../proto', import.meta.url))

/** Loads a method of a service in one of our proto files. Messages become plain objects without unset fields. */
export function loadMethod<Request, Response>(
  file: string,
  service: string,
  method: string,
): MethodDefinition<Request, Response> {
  const loaded = loadSync(file, {
    includeDirs: [FOLDER],
    longs: Number,
    enums: Number,
    bytes: Buffer,
    defaults: false,
    arrays: false,
    oneofs: false,
  })
  const definition = (loaded[service] as ServiceDefinition | undefined)?.[method]
  if (definition === undefined) throw new Error(`${file}: expected ${service}/${method}; it has none`)
  return definition as unknown as MethodDefinition<Request, Response>
}
