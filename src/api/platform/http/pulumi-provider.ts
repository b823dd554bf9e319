import type { IncomingMessage } from 'node:http';

/** Whether Pulumi's provider `pulumiservice` calls: it reads some members differently from the CLI. */
export function isPulumiProvider({ raw }: { readonly raw: IncomingMessage }): boolean {
  return raw.headers['x-pulumi-source'] === 'provider';
}
