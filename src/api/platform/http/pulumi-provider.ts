import type { IncomingMessage } from 'node:http';

/** The provider reads some members differently from the CLI. */
export function isPulumiProvider({ raw }: { readonly raw: IncomingMessage }): boolean {
  return raw.headers['x-pulumi-source'] === 'provider';
}
