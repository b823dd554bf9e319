export type KmsKey =
  | {
      readonly kind: 'aws';
      /** Id, ARN, or `alias/name`. */
      readonly key: string;
      /** Null for the region of the AWS environment. */
      readonly region: string | null;
      readonly endpoint: string | null;
    }
  | {
      readonly kind: 'google';
      /** `projects/…/locations/…/keyRings/…/cryptoKeys/…`. */
      readonly key: string;
      readonly endpoint: string;
    }
  | {
      readonly kind: 'vault';
      /** `https://host:port`. */
      readonly server: string;
      /** The transit engine. */
      readonly mount: string;
      readonly key: string;
      readonly namespace: string | null;
    };

export const isKmsUrl = (text: string): boolean => /^(awskms|gcpkms|vault):\/\//.test(text);

const googleKey = /^projects\/[^/]+\/locations\/[^/]+\/keyRings\/[^/]+\/cryptoKeys\/[^/]+$/;
const awsKey = /^(arn:aws[a-z-]*:kms:([a-z0-9-]+):\d{12}:(key|alias)\/)?[A-Za-z0-9/_-]{1,256}$/;

/** The forms are in docs/keys.md. Returns a text for an invalid URL, which it does not quote: it may contain a password by mistake. */
export function parseKmsUrl(text: string): KmsKey | string {
  // `URL` has no rules for these schemes, and key ids may be in upper case.
  const [, scheme = '', resource = '', search = ''] = /^([a-z]+):\/\/([^?#]*)(?:\?([^#]*))?$/.exec(text) ?? [];
  if (resource.includes('@')) return 'the URL must not contain a user or password';
  const given = new URLSearchParams(search);
  const take = (name: string): string | null => {
    const value = given.get(name);
    given.delete(name);
    return value || null;
  };
  const key =
    scheme === 'awskms'
      ? awsOf(resource, take)
      : scheme === 'gcpkms'
        ? googleOf(resource, take)
        : vaultOf(resource, take);
  if (typeof key === 'string') return key;
  const [unknown] = given.keys();
  return unknown === undefined ? key : `the URL has an unknown parameter ${JSON.stringify(unknown)}`;
}

type Take = (name: string) => string | null;

function awsOf(resource: string, take: Take): KmsKey | string {
  const key = resource.replace(/^\//, '');
  const found = awsKey.exec(key);
  if (!found) return 'the key must be awskms://<id or alias/name>?region=<region> or awskms:///<ARN>';
  const endpoint = take('endpoint');
  const problem = endpoint === null ? null : endpointProblem(endpoint);
  return problem ?? { kind: 'aws', key, region: take('region') ?? found[2] ?? null, endpoint };
}

function googleOf(resource: string, take: Take): KmsKey | string {
  if (!googleKey.test(resource))
    return 'the key must be gcpkms://projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>';
  const endpoint = take('endpoint') ?? 'https://cloudkms.googleapis.com';
  return endpointProblem(endpoint) ?? { kind: 'google', key: resource, endpoint };
}

function vaultOf(resource: string, take: Take): KmsKey | string {
  const [, host = '', mount = '', key = ''] = /^([^/]+)\/(.+)\/([^/]+)$/.exec(resource) ?? [];
  if (host === '') return 'the key must be vault://<host>:<port>/<mount>/<key>';
  const tls = take('tls');
  if (tls !== null && tls !== 'off') return 'the parameter "tls" can only be "off"';
  const server = `${tls === 'off' ? 'http' : 'https'}://${/:\d+$/.test(host) ? host : `${host}:8200`}`;
  return endpointProblem(server) ?? { kind: 'vault', server, mount, key, namespace: take('namespace') };
}

/** Keys in plain text must not cross a network. */
function endpointProblem(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !['https:', 'http:'].includes(url.protocol) || url.username !== '' || url.password !== '')
    return 'the server in the URL is not valid';
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
  return url.protocol === 'http:' && !isLocal ? 'without TLS, the server must be on this machine (localhost)' : null;
}
