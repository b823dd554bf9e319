import type { SectionLink } from '../platform/app/section-layout.tsx';

/** The pages of the installation, in the order of their links. */
export const operatorPages: readonly SectionLink[] = [
  { name: 'Health', link: { to: '/~/operator/health' } },
  { name: 'Queues', link: { to: '/~/operator/queues' } },
  { name: 'Locks', link: { to: '/~/operator/locks' } },
  { name: 'Storage', link: { to: '/~/operator/storage' } },
  { name: 'Backups', link: { to: '/~/operator/backups' } },
  { name: 'Tasks', link: { to: '/~/operator/tasks' } },
  { name: 'Audit log', link: { to: '/~/operator/audit' } },
];
