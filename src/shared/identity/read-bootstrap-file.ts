import { readFileSync } from 'node:fs';
import { Value } from 'typebox/value';
import { parse as parseYaml, YAMLParseError } from 'yaml';
import type { Role } from '../access/roles.ts';
import { tokenForm } from '../platform/crypto/secret-token.ts';
import { describeWeakToken } from '../platform/crypto/weak-secrets.ts';
import { isLogin, isOrganizationName } from '../stacks/names.ts';
import { BootstrapError, BootstrapFile, isManaged } from './bootstrap-file.ts';

/** JSON or YAML. Throws BootstrapError. */
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
    throw new BootstrapError(`HOLDFAST_BOOTSTRAP: ${file} is neither JSON nor YAML: ${describeYamlError(error)}`);
  }
  const problems = [...Value.Errors(BootstrapFile, content)].map(
    (issue) => `${issue.instancePath || '/'} ${issue.message}`,
  );
  if (problems.length === 0) problems.push(...findContradictions(content as BootstrapFile));
  if (problems.length > 0)
    throw new BootstrapError(`HOLDFAST_BOOTSTRAP: ${file} is invalid: ${problems.slice(0, 10).join('; ')}`);
  return content as BootstrapFile;
}

/** Returns the problems of a file that matches the schema. */
function findContradictions(file: BootstrapFile): string[] {
  const problems: string[] = [];
  const names = new Set<string>();
  const siteAdmins = new Map<string, boolean>();
  if (file.manage && file.organizations.length === 0)
    problems.push('/organizations is empty, which with manage: true would remove everyone');
  for (const [at, organization] of file.organizations.entries()) {
    const pointer = `/organizations/${at}`;
    const { members = [], name } = organization;
    if (!isOrganizationName(name))
      problems.push(`${pointer}: ${JSON.stringify(name)} is not a valid organization name`);
    if (names.has(name)) problems.push(`${pointer}: ${JSON.stringify(name)} is listed twice`);
    names.add(name);
    if (members.length === 0 && isManaged(file, organization) && !organization.allowNoMembers)
      problems.push(
        `${pointer}: ${JSON.stringify(name)} is managed and has no members, which would remove everyone from it; set allowNoMembers: true if that is intended`,
      );
    const roles = new Map<string, Role>();
    for (const [index, { login, role, siteAdmin, token }] of members.entries()) {
      const memberPointer = `${pointer}/members/${index}`;
      if (!isLogin(login)) problems.push(`${memberPointer}: ${JSON.stringify(login)} is not a valid login`);
      const weakness = token === undefined ? null : describeWeakToken(token);
      if (weakness !== null)
        problems.push(`${memberPointer}: the token ${weakness}; make one with: openssl rand -hex 24`);
      // A token with a wrong checksum would never be accepted.
      if (token !== undefined && tokenForm(token, 'hf-') === 'faulty') {
        problems.push(
          `${memberPointer}: the token of ${login} looks like a generated token (hf- and 49 letters and digits), but its checksum is wrong`,
        );
      }
      if ((roles.get(login) ?? role) !== role) problems.push(`${memberPointer}: ${login} has two roles`);
      roles.set(login, role);
      if (siteAdmin === undefined) continue;
      if ((siteAdmins.get(login) ?? siteAdmin) !== siteAdmin)
        problems.push(`${memberPointer}: ${login} is a site admin in one place and not in another`);
      siteAdmins.set(login, siteAdmin);
    }
  }
  return problems;
}

/** The parser's own message quotes the invalid text, which may be a token. */
function describeYamlError(error: unknown): string {
  if (!(error instanceof YAMLParseError)) return 'an alias cannot be resolved';
  const position = error.linePos?.[0];
  return position ? `${error.code} in line ${position.line}, column ${position.col}` : error.code;
}
