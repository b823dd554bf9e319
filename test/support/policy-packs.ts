import { gzipSync } from 'node:zlib';
import { ok, type TestStack } from './state.ts';
import type { TestApp, TestResponse } from './test-app.ts';

export interface PackOptions {
  readonly name?: string;
  /** None, as of older SDKs, if empty. */
  readonly tag?: string;
  readonly archive?: Buffer;
  readonly policies?: readonly object[];
}

/** A policy with a schema of its configuration. */
export const namedPolicy = {
  name: 'no-buckets',
  displayName: 'No buckets',
  description: 'd',
  enforcementLevel: 'mandatory',
  message: 'm',
  configSchema: { type: 'object', properties: { allowed: { type: 'array' } }, required: ['allowed'] },
};

export const smallArchive = gzipSync('the files of a policy pack');

/** The address is from the server. */
export function pathOf(address: string): string {
  const { pathname, search } = new URL(address);
  return `${pathname}${search}`;
}

/** Calls the policy routes of a stack's organization. */
export class PolicyCalls {
  readonly #app: TestApp;
  readonly #stack: TestStack;
  readonly path: string;

  constructor(app: TestApp, stack: TestStack) {
    this.#app = app;
    this.#stack = stack;
    this.path = `/api/orgs/${stack.organization}`;
  }

  call(method: string, path: string, body?: object): Promise<TestResponse> {
    const { auth } = this.#stack;
    return this.#app.call(method, `${this.path}/${path}`, body === undefined ? { auth } : { auth, body });
  }

  begin({ name = 'pack', tag = '1.0.0', policies = [namedPolicy] }: PackOptions = {}): Promise<TestResponse> {
    return this.call('POST', 'policypacks', {
      name,
      displayName: 'A pack',
      versionTag: tag,
      policies,
      runtime: 'nodejs',
    });
  }

  /** Uploads to the address in the response of `begin`, as the CLI does: without a token and an Accept header. */
  upload(begun: TestResponse, archive: Buffer = smallArchive): Promise<TestResponse> {
    const { uploadURI, requiredHeaders } = begun.json;
    const headers = Object.fromEntries(
      Object.entries(requiredHeaders as Record<string, string>).map(([name, value]) => [name.toLowerCase(), value]),
    );
    return this.#app.call('PUT', pathOf(uploadURI), { accept: null, body: archive, headers });
  }

  complete({ name = 'pack', tag = '1.0.0' }: PackOptions = {}): Promise<TestResponse> {
    return this.call('POST', `policypacks/${name}/versions/${tag}/complete`);
  }

  async publish(options: PackOptions = {}): Promise<void> {
    const begun = await ok(this.begin(options));
    await ok(this.upload(begun, options.archive));
    await ok(this.complete({ ...options, tag: options.tag || String(begun.json.version) }));
  }

  enable(pack: object, group = 'default-policy-group'): Promise<TestResponse> {
    return this.call('PATCH', `policygroups/${group}`, { addPolicyPack: pack });
  }

  disable(pack: object, group = 'default-policy-group'): Promise<TestResponse> {
    return this.call('PATCH', `policygroups/${group}`, { removePolicyPack: pack });
  }

  /** What updates of a stack must run. */
  // biome-ignore lint/suspicious/noExplicitAny: as in TestResponse.
  async required(path: string = this.#stack.path): Promise<any[]> {
    const { json } = await ok(this.#app.call('GET', `${path}/policypacks`, { auth: this.#stack.auth }));
    return json.requiredPolicies;
  }

  download(required: { readonly packLocation: string }): Promise<TestResponse> {
    return this.#app.call('GET', pathOf(required.packLocation), { accept: null });
  }
}
