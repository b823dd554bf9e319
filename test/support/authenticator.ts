import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

interface Question {
  readonly challenge: string;
  readonly rp?: { readonly id: string };
  readonly user?: { readonly id: string };
  readonly rpId?: string;
}

/** An authenticator in software, with one passkey (ES256). */
export class SoftwareAuthenticator {
  readonly #key: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  readonly id = randomBytes(16).toString('base64url');
  origin = 'http://localhost:9090';
  /** Whether its user has proved to be the owner. */
  isVerified = true;
  counter = 0;
  /** The id by which the site knows its user; part of each response once a passkey was created. */
  userHandle: string | undefined;

  constructor() {
    this.#key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  }

  /** As `navigator.credentials.create`. */
  create({ challenge, rp, user }: Question) {
    this.userHandle = user?.id;
    const { x = '', y = '' } = this.#key.publicKey.export({ format: 'jwk' });
    // COSE: {1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y}
    const key = Buffer.concat([
      Buffer.from('a5010203262001215820', 'hex'),
      Buffer.from(x, 'base64url'),
      Buffer.from('225820', 'hex'),
      Buffer.from(y, 'base64url'),
    ]);
    const id = Buffer.from(this.id, 'base64url');
    const data = this.#data(rp?.id ?? '', 0x40, [Buffer.alloc(16), Buffer.from([0, id.length]), id, key]);
    // CBOR: {"fmt": "none", "attStmt": {}, "authData": data}
    const attestation = Buffer.concat([
      Buffer.from('a363666d74646e6f6e656761747453746d74a0686175746844617461', 'hex'),
      Buffer.from([0x58, data.length]),
      data,
    ]);
    const response = {
      clientDataJSON: this.#clientData('webauthn.create', challenge).toString('base64url'),
      attestationObject: attestation.toString('base64url'),
      transports: ['internal'],
    };
    return this.#credential(response);
  }

  /** As `navigator.credentials.get`. */
  get({ challenge, rpId = '' }: Question) {
    this.counter++;
    const client = this.#clientData('webauthn.get', challenge);
    const data = this.#data(rpId, 0, []);
    const signed = Buffer.concat([data, createHash('sha256').update(client).digest()]);
    return this.#credential({
      clientDataJSON: client.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: sign('sha256', signed, this.#key.privateKey).toString('base64url'),
      ...(this.userHandle === undefined ? {} : { userHandle: this.userHandle }),
    });
  }

  #credential(response: object) {
    return { id: this.id, rawId: this.id, type: 'public-key', clientExtensionResults: {}, response };
  }

  #clientData(type: string, challenge: string): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.origin, crossOrigin: false }));
  }

  #data(rpId: string, flags: number, rest: readonly Buffer[]): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.counter);
    // The user is present, and verified.
    const all = flags | 0x01 | (this.isVerified ? 0x04 : 0);
    return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.from([all]), counter, ...rest]);
  }
}
