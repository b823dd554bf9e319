import type { Config } from '../../shared/platform/config/config.ts';
import { isLoopback, listExposures } from '../../shared/platform/config/exposure.ts';

/**
 * Describes the combinations of settings with which `holdfast setup` writes no file. Stricter than a running server, which warns: a
 * private network may be enough for it.
 */
export function listUnsafe(config: Config, given: { readonly publicUrl: boolean }): string[] {
  const { front, listen, managementListen, publicUrl, trustedProxies } = config;
  const problems = listExposures(config).filter((line) => !line.startsWith('HOLDFAST_PUBLIC_URL:'));
  const hasProxy = trustedProxies.rules.length > 0;
  const { hostname, protocol } = new URL(publicUrl);
  if (!given.publicUrl && (hasProxy || !isLoopback(listen.host)))
    problems.push(
      'HOLDFAST_PUBLIC_URL: needed, because others reach the service: --public-url https://pulumi.example.com',
    );
  else if (protocol === 'http:' && !isLoopback(hostname))
    problems.push(`HOLDFAST_PUBLIC_URL: tokens and states could be read on the way to ${publicUrl}; use https://`);
  else if (protocol === 'https:' && front.tls === null && !hasProxy)
    problems.push(
      'HOLDFAST_PUBLIC_URL: nothing terminates TLS; give certificate files (--tls-cert, --tls-key), or name the proxy (--trusted-proxies 127.0.0.1)',
    );
  if (front.tls !== null && protocol === 'http:')
    problems.push('HOLDFAST_PUBLIC_URL: the service speaks TLS only; the URL must begin with https://');
  const management = managementListen ?? listen;
  if (['0.0.0.0', '::'].includes(management.host) && !problems.some((line) => line.startsWith('HOLDFAST_MANAGEMENT')))
    problems.push(
      'HOLDFAST_MANAGEMENT_LISTEN: it has no login; name one address of a private network rather than all addresses of this machine',
    );
  return problems;
}
