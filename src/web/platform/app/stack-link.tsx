import { Link } from '@tanstack/react-router';
import type { Column } from '../ui/table.tsx';

/** The column that shows which stack of the organization a row belongs to. */
export function stackColumn<Item extends { readonly project: string; readonly stack: string }>(
  organization: string,
): Column<Item> {
  return {
    name: 'Stack',
    isTitle: true,
    cell: ({ project, stack }) => (
      <Link to="/$organization/$project/$stack" params={{ organization, project, stack }}>
        {project}/{stack}
      </Link>
    ),
  };
}
