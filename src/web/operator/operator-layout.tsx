import { Outlet } from '@tanstack/react-router';
import { useMe } from '../app/me.ts';
import { NotFoundPage } from '../app/problem-pages.tsx';
import { SectionLayout, type SectionLink } from '../app/section-layout.tsx';

const pages: readonly SectionLink[] = [
  { name: 'Health', link: { to: '/~/operator/health' } },
  { name: 'Queues', link: { to: '/~/operator/queues' } },
  { name: 'Locks', link: { to: '/~/operator/locks' } },
  { name: 'Storage', link: { to: '/~/operator/storage' } },
  { name: 'Tasks', link: { to: '/~/operator/tasks' } },
];

/** The pages of the installation. For others than operators there is nothing here. */
export function OperatorLayout() {
  const me = useMe();
  if (me === undefined) return null;
  if (!me.isOperator) return <NotFoundPage />;
  return (
    <SectionLayout label="Pages for operators" links={pages}>
      <Outlet />
    </SectionLayout>
  );
}
