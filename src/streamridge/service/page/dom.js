// Making and changing nodes. What stays the same is not touched, so that nothing flickers.

const SVG = "http://www.w3.org/2000/svg";

// Every word that comes from the service reaches the page here: as text, never as markup.
export function setText(node, text) {
  const value = String(text ?? "");
  if (node.textContent !== value) node.textContent = value;
}

export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
  return node;
}

function filled(node, attributes, content) {
  setAttributes(node, attributes);
  if (Array.isArray(content)) node.append(...content);
  else if (content !== undefined) setText(node, content);
  return node;
}

// Returns a new element; its content is a text, or a list of nodes and spaces.
export function el(tag, attributes = {}, content = undefined) {
  return filled(document.createElement(tag), attributes, content);
}

export function svg(tag, attributes = {}, content = undefined) {
  return filled(document.createElementNS(SVG, tag), attributes, content);
}

// Makes a parent have as many children as asked for; those it has stay.
export function pool(parent, count, make) {
  while (parent.childElementCount > count) parent.lastElementChild.remove();
  while (parent.childElementCount < count) parent.append(make(parent.childElementCount));
  return Array.from(parent.children);
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

export const byId = (id) => document.getElementById(id);

// A colour of the style sheet as a canvas understands it, in the look that is on.
export function color(name) {
  const probe = byId("probe");
  probe.className = `tone-${name}`;
  return getComputedStyle(probe).color;
}

export const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

// Returns a function that runs at once, and then at most once in so many milliseconds.
export function throttled(milliseconds, act) {
  let timer = null;
  let again = false;
  return function run() {
    if (timer !== null) {
      again = true;
      return;
    }
    timer = setTimeout(() => {
      timer = null;
      if (again) {
        again = false;
        run();
      }
    }, milliseconds);
    act();
  };
}
