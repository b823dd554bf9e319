import { Link } from '@tanstack/react-router';
import { listTexts } from '../texts.tsx';
import type { Column } from '../ui/table.tsx';

export function stackColumn<Item extends { readonly project: string; readonly stack: string }>(
  organization: string,
): Column<Item> {
  return {
    name: listTexts.stack,
    isTitle: true,
    cell: ({ project, stack }) => (
      <Link to="/$organization/$project/$stack" params={{ organization, project, stack }}>
        {project}/{stack}
      </Link>
    ),
  };
}
