import { Outlet } from '@tanstack/react-router';
import { useMe } from '../app/me.ts';
import { NotFoundPage } from '../app/problem-pages.tsx';
import { SectionLayout } from '../app/section-layout.tsx';
import { operatorPages } from './operator-pages.ts';

/** The pages of the installation. For others than operators there is nothing here. */
export function OperatorLayout() {
  const me = useMe();
  if (me === undefined) return null;
  if (!me.isOperator) return <NotFoundPage />;
  return (
    <SectionLayout label="Pages for operators" links={operatorPages}>
      <Outlet />
    </SectionLayout>
  );
}
