import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse as parseYaml, YAMLParseError } from 'yaml';
import { hashToken } from '../platform/crypto/secret-token.ts';
import type { Database } from '../platform/db/database.ts';
import { isLogin, isOrganizationName } from '../stacks/names.ts';
import { createIdentityRepository } from './identity-repository.ts';
import { Role } from './roles.ts';

const closed = { additionalProperties: false };

/** The file of HOLDFAST_BOOTSTRAP. */
export const BootstrapFile = Type.Object(
  {
    organizations: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          members: Type.Optional(
            Type.Array(
              Type.Object(
                {
                  login: Type.String(),
                  role: Role,
                  token: Type.Optional(Type.String({ minLength: 16, maxLength: 512 })),
                  siteAdmin: Type.Optional(Type.Boolean()),
                },
                closed,
              ),
            ),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type BootstrapFile = Type.Static<typeof BootstrapFile>;

/** The bootstrap file cannot be used; the message says where it is wrong, and never quotes a token. */
export class BootstrapError extends Error {
  override readonly name = 'BootstrapError';
}

/** Reads JSON or YAML. Throws BootstrapError. */
export function readBootstrapFile(file: string): BootstrapFile {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new BootstrapError(`HOLDFAST_BOOTSTRAP: cannot read ${file}: ${(error as Error).message}`);
  }
  let content: unknown;
  try {
    content = parseYaml(text, { logLevel: 'error' });
  } catch (error) {
    throw new BootstrapError(`HOLDFAST_BOOTSTRAP: ${file} is neither JSON nor YAML: ${describeYamlFault(error)}`);
  }
  const problems = [...Value.Errors(BootstrapFile, content)].map(
    (issue) => `${issue.instancePath || '/'} ${issue.message}`,
  );
  if (problems.length > 0)
    throw new BootstrapError(`HOLDFAST_BOOTSTRAP: ${file} is wrong: ${problems.slice(0, 10).join('; ')}`);
  const bootstrap = content as BootstrapFile;
  for (const organization of bootstrap.organizations) {
    if (!isOrganizationName(organization.name)) {
      throw new BootstrapError(
        `HOLDFAST_BOOTSTRAP: ${JSON.stringify(organization.name)} is not a valid organization name`,
      );
    }
    for (const { login } of organization.members ?? []) {
      if (!isLogin(login))
        throw new BootstrapError(`HOLDFAST_BOOTSTRAP: ${JSON.stringify(login)} is not a valid login`);
    }
  }
  return bootstrap;
}

/** The parser's own sentences quote the text at fault, which may be a token. */
function describeYamlFault(error: unknown): string {
  if (!(error instanceof YAMLParseError)) return 'an alias cannot be resolved';
  const place = error.linePos?.[0];
  return place ? `${error.code} in line ${place.line}, column ${place.col}` : error.code;
}

/**
 * Makes organizations, users, roles and tokens that are not there yet; roles that differ are set. Nothing is removed, so
 * that applying it at each start of each replica is safe. Throws BootstrapError when a token belongs to somebody else.
 */
export async function applyBootstrap(db: Database, bootstrap: BootstrapFile): Promise<void> {
  await db.inTransaction(async (tx) => {
    const identity = createIdentityRepository(tx);
    for (const { name, members } of bootstrap.organizations) {
      const organization = await identity.ensureOrganization(name);
      for (const member of members ?? []) {
        const user = await identity.ensureUser(member.login);
        await identity.setMembership(organization.id, user.id, member.role);
        if (member.siteAdmin !== undefined) await identity.setSiteAdmin(user.id, member.siteAdmin);
        if (member.token === undefined) continue;
        const token = { userId: user.id, hash: hashToken(member.token), description: 'bootstrap', expiresAt: null };
        if (!(await identity.insertToken(token))) {
          throw new BootstrapError(`HOLDFAST_BOOTSTRAP: the token of ${member.login} belongs to another user`);
        }
      }
    }
  });
}
