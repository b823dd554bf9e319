import { pageGroupTexts, pageTexts } from '../texts.tsx';
import { useMe } from './me.ts';
import type { SectionLink } from './section-layout.tsx';

interface OrganizationPage extends SectionLink {
  readonly isForAdmins?: boolean;
}

/** Pages are in the order of their links. */
const pages: readonly OrganizationPage[] = [
  { name: pageTexts.members, group: pageGroupTexts.people, link: { to: '/$organization/~/members' } },
  { name: pageTexts.teams, group: pageGroupTexts.people, link: { to: '/$organization/~/teams' } },
  { name: pageTexts.roles, group: pageGroupTexts.people, link: { to: '/$organization/~/roles' } },
  { name: pageTexts.access, group: pageGroupTexts.people, link: { to: '/$organization/~/access' }, isForAdmins: true },
  { name: pageTexts.tokens, group: pageGroupTexts.machines, link: { to: '/$organization/~/tokens' } },
  {
    name: pageTexts.trustPolicies,
    group: pageGroupTexts.machines,
    link: { to: '/$organization/~/trust-policies' },
    isForAdmins: true,
  },
  { name: pageTexts.rules, group: pageGroupTexts.updates, link: { to: '/$organization/~/rules' }, isForAdmins: true },
  { name: pageTexts.approvals, group: pageGroupTexts.updates, link: { to: '/$organization/~/approvals' } },
  { name: pageTexts.policies, group: pageGroupTexts.updates, link: { to: '/$organization/~/policies' } },
  {
    name: pageTexts.webhooks,
    group: pageGroupTexts.updates,
    link: { to: '/$organization/~/webhooks' },
    isForAdmins: true,
  },
  { name: pageTexts.audit, group: pageGroupTexts.records, link: { to: '/$organization/~/audit' }, isForAdmins: true },
  { name: pageTexts.limits, group: pageGroupTexts.records, link: { to: '/$organization/~/limits' }, isForAdmins: true },
  {
    name: pageTexts.imports,
    group: pageGroupTexts.records,
    link: { to: '/$organization/~/imports' },
    isForAdmins: true,
  },
  {
    name: pageTexts.deletedStacks,
    group: pageGroupTexts.records,
    link: { to: '/$organization/~/deleted-stacks' },
    isForAdmins: true,
  },
];

/** The pages that a member or an admin sees. */
export function organizationPages(isAdmin: boolean): readonly OrganizationPage[] {
  return pages.filter(({ isForAdmins = false }) => isAdmin || !isForAdmins);
}

export function useMayManage(organization: string): boolean {
  const me = useMe();
  // Being an operator does not make a user an admin of any organization.
  return me?.organizations.some(({ name, role }) => name === organization && role === 'admin') ?? false;
}
