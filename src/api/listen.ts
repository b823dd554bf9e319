import type { App } from './app.ts';

/** Listens and returns the base URL with the port that was taken (0 asks for any free one). */
export async function listen(app: App, address: { host: string; port: number }): Promise<string> {
  await app.listen(address);
  const bound = app.server.address();
  const port = typeof bound === 'object' && bound ? bound.port : address.port;
  const host = ['0.0.0.0', '::'].includes(address.host) ? 'localhost' : address.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
